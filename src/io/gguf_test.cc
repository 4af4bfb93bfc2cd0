#include "io/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "exact_bytes.h"
#include "gguf/gguf_writer.h"

namespace tidekv {
namespace {

using gguf::GgufWriter;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result<GgufContents> parse(const std::vector<std::byte>& bytes) {
  return parse_gguf(bytes, "m.gguf");
}

std::string error_of(const std::string& text) {
  const Result<GgufContents> result = parse(bytes_of(text));
  return result.ok() ? "parsed" : result.error().message;
}

// One field of every type, and a tensor of each kind of layout.
GgufWriter tiny(std::uint32_t version) {
  GgufWriter writer(version);
  writer.field("u8", gguf::kUint8, "\xFF")
      .field("i8", 1, "\xFF")
      .uint16("u16", 65535)
      .field("i16", 3, "\xFE\xFF")
      .uint32("u32", 4'000'000'000U)
      .int32("i32", -7)
      .float32("f32", 0.5F)
      .boolean("yes", true)
      .boolean("no", false)
      .string("text", "a\tb")
      .string("nothing", "")
      .field("u64", gguf::kUint64, gguf::number(std::uint64_t{INT64_MAX}))
      .field("u64.large", gguf::kUint64, gguf::number(UINT64_MAX))
      .field("i64", gguf::kInt64, gguf::number(INT64_MIN))
      .field("f64", gguf::kFloat64, gguf::number(1e300))
      .strings("names", {"one", "", "three"})
      .strings("none", {})
      .int32s("ids", {3, -1})
      .float32s("scores", {1.5F, -2.0F})
      .field("bytes", gguf::kArray, gguf::array(gguf::kUint8, 3, "\x01\x80\xFF"))
      .field("flags", gguf::kArray, gguf::array(gguf::kBool, 2, std::string("\x00\x01", 2)))
      .field(
          "wide", gguf::kArray,
          gguf::array(gguf::kUint64, 2, gguf::number(std::uint64_t{1}) + gguf::number(UINT64_MAX)));
  writer.tensor("vector", {3}, DType::kF32, std::string(12, 'a'))
      .tensor("matrix", {2, 3}, DType::kBF16, std::string(12, 'b'))
      .tensor("cube", {1, 2, 3}, DType::kF16, std::string(12, 'c'))
      .tensor("blocks", {2, 64}, DType::kQ80, std::string(136, 'd'))
      .tensor("other", {4}, DType::kI32, std::string(16, 'e'));
  return writer;
}

class GgufVersions : public testing::TestWithParam<std::uint32_t> {};

TEST_P(GgufVersions, GiveShapeTypeAndBytesOfEachTensor) {
  const std::vector<std::byte> bytes = bytes_of(tiny(GetParam()).file());
  const auto contents = parse(bytes);
  ASSERT_TRUE(contents.ok()) << contents.error().message;
  const auto& tensors = contents.value().tensors;
  ASSERT_EQ(tensors.size(), 4U);
  EXPECT_THAT(tensors.at("vector").shape, ElementsAre(3));
  EXPECT_THAT(tensors.at("matrix").shape, ElementsAre(2, 3));
  EXPECT_THAT(tensors.at("cube").shape, ElementsAre(1, 2, 3));
  EXPECT_EQ(tensors.at("vector").dtype, DType::kF32);
  EXPECT_EQ(tensors.at("matrix").dtype, DType::kBF16);
  EXPECT_EQ(tensors.at("cube").dtype, DType::kF16);

  const TensorInfo& blocks = tensors.at("blocks");
  EXPECT_EQ(blocks.name, "blocks");
  EXPECT_EQ(blocks.dtype, DType::kQ80);
  EXPECT_THAT(blocks.shape, ElementsAre(2, 64));
  EXPECT_EQ(blocks.num_bytes, 2 * 2 * 34);
  EXPECT_EQ(blocks.data[0], std::byte{'d'});
  EXPECT_EQ(blocks.data[blocks.num_bytes - 1], std::byte{'d'});
  EXPECT_EQ(contents.value().other_dtypes.at("other"), "I32");
}

TEST_P(GgufVersions, GiveFieldsInTheFilesOrder) {
  const std::vector<std::byte> bytes = bytes_of(tiny(GetParam()).file());
  const auto contents = parse(bytes);
  ASSERT_TRUE(contents.ok()) << contents.error().message;
  const GgufMetadata& metadata = contents.value().metadata;
  EXPECT_EQ(metadata.version, GetParam());
  ASSERT_EQ(metadata.fields.size(), 22U);
  EXPECT_EQ(metadata.fields.front().key, "u8");
  EXPECT_EQ(metadata.fields.back().key, "wide");

  const auto integer = [&](const char* key) {
    return metadata.reader().integer(key, {INT64_MIN, INT64_MAX}).value();
  };
  EXPECT_EQ(integer("u8"), 255);
  EXPECT_EQ(integer("i8"), -1);
  EXPECT_EQ(integer("u16"), 65535);
  EXPECT_EQ(integer("i16"), -2);
  EXPECT_EQ(integer("u32"), 4'000'000'000);
  EXPECT_EQ(integer("i32"), -7);
  EXPECT_EQ(integer("u64"), INT64_MAX);
  EXPECT_EQ(integer("i64"), INT64_MIN);
  EXPECT_EQ(metadata.reader().number("u64.large", {0, 1e20}).value(), 0x1p64);
  EXPECT_EQ(metadata.reader().number("f32", {0, 1}).value(), 0.5);
  EXPECT_EQ(metadata.reader().number("f64", {0, 1e301}).value(), 1e300);
  EXPECT_TRUE(metadata.reader().boolean("yes").value());
  EXPECT_FALSE(metadata.reader().boolean("no").value());
  EXPECT_EQ(metadata.reader().string("text", "").value(), "a\tb");
  EXPECT_EQ(metadata.reader().string("nothing", "").value(), "");
}

TEST_P(GgufVersions, GiveArraysByKey) {
  const std::vector<std::byte> bytes = bytes_of(tiny(GetParam()).file());
  const auto contents = parse(bytes);
  ASSERT_TRUE(contents.ok()) << contents.error().message;
  const GgufMetadata& metadata = contents.value().metadata;
  EXPECT_THAT(metadata.strings("names").value(), ElementsAre("one", "", "three"));
  EXPECT_THAT(metadata.strings("none").value(), IsEmpty());
  EXPECT_THAT(metadata.integers("ids").value(), ElementsAre(3, -1));
  EXPECT_THAT(metadata.integers("bytes").value(), ElementsAre(1, 128, 255));
  EXPECT_THAT(metadata.floats("scores").value(), ElementsAre(1.5F, -2.0F));
  EXPECT_EQ(metadata.array("flags")->count, 2U);
  EXPECT_EQ(metadata.array("flags")->type, GgufType::kBool);
  EXPECT_EQ(metadata.array("u8"), nullptr);
}

// The cut falls into the magic, the header, fields, descriptions, the padding or the data.
TEST_P(GgufVersions, CutAtAnyByteAreErrorsThatNameTheFile) {
  const std::string whole = tiny(GetParam()).file();
  ASSERT_LE(whole.size(), 4096U);
  for (std::size_t len = 0; len < whole.size(); ++len) {
    ASSERT_THAT(error_of(whole.substr(0, len)), AllOf(HasSubstr("m.gguf: "), HasSubstr("expected")))
        << len;
  }
  EXPECT_EQ(error_of(whole), "parsed");
}

INSTANTIATE_TEST_SUITE_P(TwoAndThree, GgufVersions, testing::Values(2U, 3U));

TEST(Gguf, ReadsEveryElementTypeByItsNumber) {
  for (const DType dtype :
       {DType::kF32, DType::kF16, DType::kBF16, DType::kQ80, DType::kQ40, DType::kQ41, DType::kQ50,
        DType::kQ51, DType::kQ4K, DType::kQ5K, DType::kQ6K}) {
    const auto num_bytes = static_cast<std::size_t>(row_bytes(dtype, 256));
    const auto bytes =
        bytes_of(GgufWriter().tensor("t", {256}, dtype, std::string(num_bytes, 'x')).file());
    const auto contents = parse(bytes);
    ASSERT_TRUE(contents.ok()) << contents.error().message;
    ASSERT_TRUE(contents.value().tensors.contains("t")) << name_of(dtype);
    EXPECT_EQ(contents.value().tensors.at("t").dtype, dtype);
  }
}

// The byte counts of those that are not read still bound the file: one byte less is an error.
TEST(Gguf, NamesElementTypesThatAreNotRead) {
  struct NotRead {
    std::uint32_t id;
    std::string name;
    std::size_t bytes_of_256;
  };
  for (const NotRead& type :
       {NotRead{10, "Q2_K", 84}, NotRead{11, "Q3_K", 110}, NotRead{17, "IQ2_XS", 74},
        NotRead{20, "IQ4_NL", 144}, NotRead{24, "I8", 256}, NotRead{27, "I64", 2048},
        NotRead{39, "MXFP4", 136}, NotRead{99, "99", 1}}) {
    const std::string start =
        gguf::padded(gguf::header(3, 1, 0) + gguf::description("t", {256}, type.id, 0), 32);
    const auto bytes = bytes_of(start + std::string(type.bytes_of_256, 'x'));
    const auto contents = parse(bytes);
    ASSERT_TRUE(contents.ok()) << contents.error().message;
    EXPECT_THAT(contents.value().tensors, IsEmpty());
    EXPECT_EQ(contents.value().other_dtypes.at("t"), type.name);
    EXPECT_THAT(error_of(start + std::string(type.bytes_of_256 - 1, 'x')),
                HasSubstr("tensor 't': " + std::to_string(type.bytes_of_256) + " bytes"));
  }
}

TEST(Gguf, FollowsTheAlignmentThatTheFileGives) {
  for (const std::uint32_t alignment : {4U, 64U, 1024U}) {
    const auto bytes = bytes_of(GgufWriter()
                                    .alignment(alignment)
                                    .tensor("a", {1}, DType::kF32, "aaaa")
                                    .tensor("b", {1}, DType::kF32, "bbbb")
                                    .file());
    const auto contents = parse(bytes);
    ASSERT_TRUE(contents.ok()) << contents.error().message;
    EXPECT_EQ((contents.value().tensors.at("a").data - bytes.data()) % alignment, 0);
    EXPECT_EQ(contents.value().tensors.at("a").data[0], std::byte{'a'});
    EXPECT_EQ(contents.value().tensors.at("b").data[3], std::byte{'b'});
  }
}

TEST(Gguf, AcceptsAFileWithoutTensorsOrFields) {
  EXPECT_EQ(error_of(gguf::header(3, 0, 0)), "parsed");
  EXPECT_EQ(error_of(GgufWriter().string("a", "b").file()), "parsed");
}

// The order of descriptions and of data need not be the same, and gaps are allowed.
TEST(Gguf, AcceptsTensorsInAnyOrder) {
  const std::string file = gguf::padded(gguf::header(3, 2, 0) + gguf::description("a", {1}, 0, 96) +
                                            gguf::description("b", {1}, 0, 0),
                                        32) +
                           std::string(100, 'x');
  EXPECT_EQ(error_of(file), "parsed");
}

TEST(GgufMetadata, NamesAnArrayThatIsMissingOrOfAnotherType) {
  const std::vector<std::byte> bytes = bytes_of(tiny(3).file());
  const auto contents = parse(bytes);
  ASSERT_TRUE(contents.ok());
  const GgufMetadata& metadata = contents.value().metadata;
  EXPECT_THAT(metadata.strings("absent").error().message,
              HasSubstr("m.gguf: field 'absent' is missing; expected an array of strings"));
  EXPECT_THAT(metadata.floats("u8").error().message,
              HasSubstr("m.gguf: field 'u8' is the number 255; expected an array of float32"));
  EXPECT_THAT(metadata.strings("ids").error().message,
              HasSubstr("field 'ids' is an array of int32; expected an array of strings"));
  EXPECT_THAT(metadata.integers("scores").error().message,
              HasSubstr("field 'scores' is an array of float32; expected an array of integers"));
  EXPECT_THAT(metadata.floats("ids").error().message, HasSubstr("is an array of int32"));
  EXPECT_THAT(metadata.integers("flags").error().message, HasSubstr("is an array of bool"));
  EXPECT_THAT(metadata.integers("wide").error().message,
              HasSubstr("holds the number 1.8446744073709552e+19; expected an array of integers"));
}

// A reader of single values must not take an array for a missing value and go on with a default.
TEST(GgufMetadata, ShowsAnArrayAmongTheFieldsAsAnArray) {
  const std::vector<std::byte> bytes = bytes_of(tiny(3).file());
  const auto contents = parse(bytes);
  ASSERT_TRUE(contents.ok());
  const FieldReader fields = contents.value().metadata.reader();
  EXPECT_THAT(fields.integer_or("ids", {0, 100}, 5).error().message,
              HasSubstr("field 'ids' is an array; expected an integer"));
  EXPECT_FALSE(fields.integers("none", {0, 100}).ok());
}

TEST(GgufMetadata, GivesNoNumberInARangeForNanAndInfinity) {
  const std::vector<std::byte> bytes =
      bytes_of(GgufWriter().float32("nan", NAN).float32("inf", INFINITY).file());
  const auto contents = parse(bytes);
  ASSERT_TRUE(contents.ok());
  const FieldReader fields = contents.value().metadata.reader();
  EXPECT_THAT(fields.number("nan", {0, 1}).error().message,
              HasSubstr("field 'nan' is the number nan; expected a number from 0 to 1"));
  EXPECT_FALSE(fields.number("inf", {0, 1e308}).ok());
}

struct BadFile {
  std::string bytes;
  std::vector<std::string> complaints;
};

class BadGguf : public testing::TestWithParam<BadFile> {};

TEST_P(BadGguf, IsAnErrorThatNamesFileAndFault) {
  const std::string error = error_of(GetParam().bytes);
  EXPECT_THAT(error, HasSubstr("m.gguf: "));
  EXPECT_THAT(error, HasSubstr("expected"));
  for (const std::string& complaint : GetParam().complaints) {
    EXPECT_THAT(error, HasSubstr(complaint));
  }
}

const std::string kRest(64, '\0');  // bytes after a count that is too large for them

const BadFile kNotGguf[] = {
    {"", {"does not begin with 'GGUF'"}},
    {"GGU", {"does not begin with 'GGUF'"}},
    {"GGUF", {"only 4 bytes; expected a header of 24 bytes"}},
    {"FUGG" + kRest, {"does not begin with 'GGUF'"}},
    {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n", {"Git LFS pointer"}},
    {"<!DOCTYPE html>" + kRest, {"a web page"}},
    {"tjgg" + kRest, {"a GGML file from before GGUF"}},
    {"PK\x03\x04" + kRest, {"a zip archive"}},
    {gguf::header(0, 0, 0), {"version 0; expected a little-endian one of version 2 or 3"}},
    {gguf::header(1, 0, 0), {"a GGUF file of version 1, which is no longer in use"}},
    {gguf::header(4, 0, 0), {"a GGUF file of version 4;"}},
    {gguf::header(0x03000000, 0, 0), {"a big-endian GGUF file; expected a little-endian one"}},
    {gguf::header(0x02000000, 0, 0), {"a big-endian GGUF file; expected a little-endian one"}},
    {gguf::header(3, 0, 65537) + kRest,
     {"counts 65537 metadata fields; expected at most 65536", "64 bytes after the header"}},
    {gguf::header(3, 0, UINT64_MAX) + kRest, {"counts 18446744073709551615 metadata fields"}},
    {gguf::header(3, 0, 5) + kRest, {"counts 5 metadata fields", "no more than the 64 bytes"}},
    {gguf::header(3, UINT64_MAX, 0) + kRest,
     {"counts 18446744073709551615 tensors; expected at most 65536"}},
    {gguf::header(3, std::uint64_t{1} << 60, 0) + kRest, {"counts 1152921504606846976 tensors"}},
    {gguf::header(3, 2, 0) + kRest, {"counts 2 tensors", "no more than the 64 bytes"}},
};

INSTANTIATE_TEST_SUITE_P(Files, BadGguf, testing::ValuesIn(kNotGguf));

// A file with this one field, whose bytes are given, and bytes after it.
BadFile bad_field(const std::string& field, std::vector<std::string> complaints) {
  return {gguf::header(3, 0, 1) + field + kRest, std::move(complaints)};
}

BadFile bad_value(std::uint32_t type, const std::string& value,
                  std::vector<std::string> complaints) {
  complaints.emplace_back("metadata field 'a.b': ");
  return bad_field(gguf::field("a.b", type, value), std::move(complaints));
}

const std::uint64_t kHuge = std::uint64_t{1} << 63;

const BadFile kBadFields[] = {
    bad_field(gguf::number(kHuge), {"metadata field 1 of 1: its key has 9223372036854775808 bytes",
                                    "64 bytes left at byte 32; expected a complete file"}),
    bad_field(gguf::number(UINT64_MAX) + "k", {"its key has 18446744073709551615 bytes"}),
    bad_field(gguf::string(""), {"its key is empty; expected 1 to 65535 bytes"}),
    bad_field(gguf::string(std::string(65536, 'k')),
              {"its key has 65536 bytes; expected at most 65535"}),
    bad_field(gguf::field("\x1B[2J\n", 13, ""), {"metadata field '\\x1B[2J\\x0A': its type is 13"}),
    bad_value(13, "", {"its type is 13; expected 0 to 12"}),
    bad_value(UINT32_MAX, "", {"its type is 4294967295"}),
    bad_value(gguf::kBool, "\x02", {"a bool is 2; expected 0 or 1"}),
    bad_value(gguf::kString, gguf::number(kHuge), {"its string has 9223372036854775808 bytes"}),
    bad_value(gguf::kString, gguf::number(UINT64_MAX - 7), {"its string has 18446744073709551608"}),
    bad_value(gguf::kArray, gguf::array(13, 1, ""), {"its type is 13; expected 0 to 12"}),
    bad_value(gguf::kArray, gguf::array(gguf::kArray, 1, gguf::array(gguf::kUint8, 1, "x")),
              {"it is an array of arrays; expected numbers, bools or strings"}),
    bad_value(gguf::kArray, gguf::array(gguf::kUint8, std::uint64_t{1} << 60, ""),
              {"it has 1152921504606846976 elements of type uint8", "64 bytes left"}),
    bad_value(gguf::kArray, gguf::array(gguf::kFloat64, std::uint64_t{1} << 61, ""),
              {"it has 2305843009213693952 elements of type float64"}),
    bad_value(gguf::kArray, gguf::array(gguf::kUint32, 17, ""),
              {"it has 17 elements of type uint32, but the file has 64 bytes left"}),
    bad_value(gguf::kArray, gguf::array(gguf::kString, std::uint64_t{1} << 60, ""),
              {"it has 1152921504606846976 elements of type string"}),
    bad_value(gguf::kArray,
              gguf::array(gguf::kString, 3, gguf::string("a") + gguf::number(UINT64_MAX)),
              {"its string 2 of 3 has 18446744073709551615 bytes"}),
    bad_value(gguf::kArray, gguf::array(gguf::kString, 10, gguf::string(std::string(30, 'x'))),
              {"its string 10 of 10 has no length, but the file has 0 bytes left"}),
    bad_value(gguf::kArray, gguf::array(gguf::kBool, 2, "\x01\x03"), {"a bool is 3"}),
    {gguf::header(3, 0, 2) + gguf::field("twice", gguf::kUint8, "1") +
         gguf::field("twice", gguf::kArray, gguf::array(gguf::kUint8, 0, "")),
     {"metadata field 'twice': it appears twice"}},
};

INSTANTIATE_TEST_SUITE_P(Fields, BadGguf, testing::ValuesIn(kBadFields));

BadFile bad_alignment(std::uint32_t type, const std::string& value, const std::string& shown) {
  return {gguf::header(3, 0, 1) + gguf::field("general.alignment", type, value) + kRest,
          {"field 'general.alignment' is " + shown + "; expected a power of two"}};
}

const BadFile kBadAlignments[] = {
    bad_alignment(gguf::kUint32, gguf::number(0U), "the number 0"),
    bad_alignment(gguf::kUint32, gguf::number(48U), "the number 48"),
    bad_alignment(gguf::kUint32, gguf::number(UINT32_MAX), "the number 4294967295"),
    bad_alignment(gguf::kInt32, gguf::number(-32), "the number -32"),
    bad_alignment(gguf::kUint64, gguf::number(kHuge), "the number 9.223372036854776e+18"),
    bad_alignment(gguf::kFloat32, gguf::number(32.0F), "the number 32.0"),
    bad_alignment(gguf::kBool, "\x01", "true"),
    bad_alignment(gguf::kString, gguf::string("32"), "the string '32'"),
    bad_alignment(gguf::kArray, gguf::array(gguf::kUint32, 1, gguf::number(32U)), "an array"),
};

INSTANTIATE_TEST_SUITE_P(Alignments, BadGguf, testing::ValuesIn(kBadAlignments));

// A file with these tensors' descriptions and 64 bytes of data.
std::string with_tensors(const std::vector<std::string>& descriptions) {
  std::string out = gguf::header(3, descriptions.size(), 0);
  for (const std::string& description : descriptions) {
    out += description;
  }
  return gguf::padded(std::move(out), 32) + kRest;
}

BadFile bad_tensor(const std::vector<std::uint64_t>& dims, std::uint32_t type, std::uint64_t offset,
                   std::vector<std::string> complaints) {
  complaints.emplace_back("tensor 't': ");
  return {with_tensors({gguf::description("t", dims, type, offset)}), std::move(complaints)};
}

const BadFile kBadTensors[] = {
    {with_tensors({gguf::description("", {1}, 0, 0)}),
     {"tensor 1 of 1: its name has 0 bytes; expected 1 to 64"}},
    {with_tensors({gguf::description(std::string(65, 'n'), {1}, 0, 0)}),
     {"tensor 1 of 1: its name has 65 bytes; expected 1 to 64"}},
    {with_tensors({gguf::number(kHuge) + kRest}), {"its name has 9223372036854775808 bytes"}},
    bad_tensor({}, 0, 0, {"it has 0 dimensions; expected 1 to 4"}),
    bad_tensor({1, 1, 1, 1, 1}, 0, 0, {"it has 5 dimensions; expected 1 to 4"}),
    {with_tensors({gguf::string("t") + gguf::number(UINT32_MAX) + kRest}),
     {"tensor 't': it has 4294967295 dimensions"}},
    bad_tensor({0}, 0, 0, {"a dimension is 0"}),
    bad_tensor({1, UINT64_MAX}, 0, 0, {"a dimension is 18446744073709551615"}),
    bad_tensor({kHuge}, 0, 0, {"a dimension is 9223372036854775808"}),
    // 2^62 elements of 4 bytes: the byte count wraps to 0.
    bad_tensor({std::uint64_t{1} << 62}, 0, 0,
               {"shape [4611686018427387904] of type F32 takes more than 2^63 bytes"}),
    // The element count wraps to 4.
    bad_tensor({(std::uint64_t{1} << 62) + 1, 4}, 24, 0,
               {"shape [4, 4611686018427387905] of type I8 takes more than 2^63 bytes"}),
    bad_tensor({std::uint64_t{1} << 32, std::uint64_t{1} << 32}, 99, 0,
               {"of type 99 takes more than 2^63 bytes"}),
    bad_tensor({33}, 8, 0, {"a row of 33 elements of type Q8_0; expected a multiple of 32"}),
    bad_tensor({32, 8}, 12, 0, {"a row of 32 elements of type Q4_K; expected a multiple of 256"}),
    bad_tensor({1}, 0, 16, {"its offset is 16; expected a multiple of 32, the alignment"}),
    bad_tensor({8}, 0, UINT64_MAX - 31,
               {"32 bytes at offset 18446744073709551584 of the data end at byte 2^63 or later"}),
    bad_tensor({8}, 0, INT64_MAX - 31, {"end at byte 2^63 or later"}),
    bad_tensor({17}, 0, 0,
               {"68 bytes at offset 0 of the data end at byte 132, but the file has "
                "128 bytes; expected a complete file"}),
    bad_tensor({1}, 0, 64, {"4 bytes at offset 64 of the data end at byte 132"}),
    bad_tensor({1}, 99, 64, {"1 bytes at offset 64 of the data end at byte 129"}),
    bad_tensor({32, 2}, 8, 0, {"68 bytes at offset 0 of the data end at byte 164"}),
    {with_tensors({gguf::description("twice", {1}, 0, 0), gguf::description("twice", {1}, 0, 32)}),
     {"tensor 'twice': it appears twice"}},
    {with_tensors({gguf::description("twice", {1}, 0, 0), gguf::description("twice", {1}, 26, 32)}),
     {"tensor 'twice': it appears twice"}},
    {with_tensors({gguf::description("a", {9}, 0, 0), gguf::description("b", {1}, 0, 32)}),
     {"tensor 'b': data begins at offset 32, inside that of tensor 'a', which ends at 36"}},
    {with_tensors({gguf::description("a", {1}, 0, 32), gguf::description("b", {16}, 24, 32)}),
     {"tensor 'b': data begins at offset 32, inside that of tensor 'a', which ends at 36"}},
    {with_tensors({gguf::description("a", {1}, 99, 0), gguf::description("b", {1}, 0, 0)}),
     {"inside that of tensor 'a', which ends at 1"}},
    {GgufWriter().alignment(1).string("s", "").tensor("t", {1}, DType::kF32, "abcd").file(),
     {"tensor 't': data begins at byte", "of the file; expected a multiple of 4"}},
};

INSTANTIATE_TEST_SUITE_P(Tensors, BadGguf, testing::ValuesIn(kBadTensors));

TEST(Gguf, KeepsWhatStandsBeforeTheDamage) {
  const std::string whole = GgufWriter()
                                .string("first", "1")
                                .string("second", "2")
                                .tensor("a", {8}, DType::kF32, std::string(32, 'a'))
                                .tensor("b", {8}, DType::kF32, std::string(32, 'b'))
                                .file();
  const auto kept = [](const std::string& text) {
    GgufContents contents;
    EXPECT_FALSE(parse_gguf_until_damage(bytes_of(text), "m.gguf", contents).ok());
    return std::pair(contents.metadata.fields.size(), contents.tensors.size());
  };
  EXPECT_EQ(kept(whole.substr(0, whole.size() - 1)), std::pair(std::size_t{2}, std::size_t{1}));
  EXPECT_EQ(kept(whole.substr(0, whole.size() - 33)), std::pair(std::size_t{2}, std::size_t{0}));
  EXPECT_EQ(kept(whole.substr(0, whole.find("second") + 2)).first, 1U);
  EXPECT_EQ(kept(whole.substr(0, 20)).first, 0U);
}

}  // namespace
}  // namespace tidekv
