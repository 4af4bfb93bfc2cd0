#include "io/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "exact_bytes.h"

namespace tidekv {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string length_bytes(std::uint64_t length) {
  std::string out;
  for (int shift = 0; shift < 64; shift += 8) {
    out += static_cast<char>(length >> shift & 0xFF);
  }
  return out;
}

std::string file_of(const std::string& header, std::size_t data_bytes) {
  std::string data;
  for (std::size_t i = 0; i < data_bytes; ++i) {
    data += static_cast<char>(i);
  }
  return length_bytes(header.size()) + header + data;
}

// Pads the header with spaces so that the data begins at a multiple of 8, as writers do.
std::string aligned_file_of(std::string header, std::size_t data_bytes) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  return file_of(header, data_bytes);
}

Result<SafetensorsContents> parse(const std::vector<std::byte>& bytes) {
  return parse_safetensors(bytes, "w.safetensors");
}

std::string error_of(const std::string& text) {
  const Result<SafetensorsContents> result = parse(bytes_of(text));
  return result.ok() ? "parsed" : result.error().message;
}

TEST(Safetensors, GivesShapeTypeAndBytesOfEachTensor) {
  const std::vector<std::byte> bytes = bytes_of(aligned_file_of(
      R"({"__metadata__":{"format":"pt"},
          "b":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},
          "a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},
          "c":{"dtype":"F16","shape":[1],"data_offsets":[16,18]}})",
      18));
  const auto contents = parse(bytes);
  ASSERT_TRUE(contents.ok()) << contents.error().message;
  const auto& tensors = contents.value().tensors;
  ASSERT_EQ(tensors.size(), 3U);
  const std::byte* data = bytes.data() + bytes.size() - 18;

  EXPECT_EQ(tensors.at("a").dtype, DType::kF32);
  EXPECT_THAT(tensors.at("a").shape, IsEmpty());
  EXPECT_EQ(tensors.at("a").data, data);
  EXPECT_EQ(tensors.at("a").num_bytes, 4);

  EXPECT_EQ(tensors.at("b").name, "b");
  EXPECT_EQ(tensors.at("b").dtype, DType::kBF16);
  EXPECT_THAT(tensors.at("b").shape, ElementsAre(2, 3));
  EXPECT_EQ(tensors.at("b").data, data + 4);
  EXPECT_EQ(tensors.at("b").num_bytes, 12);

  EXPECT_EQ(tensors.at("c").dtype, DType::kF16);
  EXPECT_EQ(tensors.at("c").data, data + 16);
}

TEST(Safetensors, AcceptsWhitespaceBeforeAndAfterTheHeader) {
  EXPECT_EQ(error_of(aligned_file_of(" \t\r\n{\"a\":{\"dtype\":\"F32\",\"shape\":[1],"
                                     "\"data_offsets\":[0,4]}} \t\r\n",
                                     4)),
            "parsed");
}

TEST(Safetensors, AcceptsEmptyTensorsAndNoTensors) {
  EXPECT_EQ(error_of(file_of("{}", 0)), "parsed");
  EXPECT_EQ(error_of(file_of(R"({"__metadata__":null})", 0)), "parsed");
  EXPECT_EQ(error_of(aligned_file_of(
                R"({"e":{"dtype":"F32","shape":[2,0],"data_offsets":[0,0]},
                    "f":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]},
                    "g":{"dtype":"F16","shape":[0],"data_offsets":[2,2]}})",
                2)),
            "parsed");
}

TEST(Safetensors, KeepsTheNamesOfTensorsOfOtherTypes) {
  const auto bytes =
      bytes_of(aligned_file_of(R"({"i":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},
                          "q":{"dtype":"F4","shape":[2,3],"data_offsets":[8,11]}})",
                               11));
  const auto contents = parse(bytes);
  ASSERT_TRUE(contents.ok()) << contents.error().message;
  EXPECT_THAT(contents.value().tensors, IsEmpty());
  EXPECT_EQ(contents.value().other_dtypes.at("i"), "I64");
  EXPECT_EQ(contents.value().other_dtypes.at("q"), "F4");
}

struct BadFile {
  std::string bytes;
  std::vector<std::string> complaints;
};

BadFile bad_header(const std::string& header, std::size_t data_bytes,
                   std::vector<std::string> complaints) {
  return {aligned_file_of(header, data_bytes), std::move(complaints)};
}

// One tensor "a" with the given fields and four bytes of data.
BadFile bad_tensor(const std::string& fields, std::vector<std::string> complaints) {
  complaints.emplace_back("tensor 'a'");
  return bad_header("{\"a\":{" + fields + "}}", 4, std::move(complaints));
}

class BadSafetensors : public testing::TestWithParam<BadFile> {};

TEST_P(BadSafetensors, IsAnErrorThatNamesFileAndFault) {
  const std::string error = error_of(GetParam().bytes);
  EXPECT_THAT(error, HasSubstr("w.safetensors: "));
  for (const std::string& complaint : GetParam().complaints) {
    EXPECT_THAT(error, HasSubstr(complaint));
  }
}

const BadFile kNotSafetensors[] = {
    {"", {"only 0 bytes; expected a header length of 8 bytes"}},
    {"1234567", {"only 7 bytes"}},
    {length_bytes(2), {"the header ends at byte 10, but the file has 8 bytes"}},
    {length_bytes(3) + "{}", {"the header ends at byte 11, but the file has 10 bytes"}},
    {length_bytes(100'000'001) + "{}",
     {"header length is 100000001 bytes; expected at most 100000000"}},
    {length_bytes(UINT64_MAX) + "{}", {"header length is 18446744073709551615"}},
    {length_bytes(UINT64_MAX - 7) + "{}", {"header length is 18446744073709551608"}},
    {"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n",
     {"Git LFS pointer", "git lfs pull"}},
    {"<!DOCTYPE html><html><body>404</body></html>", {"web page"}},
    {"<html>", {"web page"}},
    {std::string("PK\x03\x04\x00\x00\x08\x08 archive/data.pkl", 24), {"zip archive"}},
    {"\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20", {"Python pickle"}},
    {std::string("GGUF\x03\x00\x00\x00\x00\x00\x00\x00", 12), {"GGUF"}},
    {R"({"metadata": {"total_size": 4}, "weight_map": {}})", {"JSON text"}},
    {"\x89HDF\r\n\x1A\n", {"HDF5"}},
    {"\x1F\x8B\x08\x08 gzip", {"gzip"}},
};

const BadFile kBadHeaders[] = {
    {file_of("", 4), {"does not begin with '{'; expected a JSON object"}},
    {file_of("    ", 4), {"does not begin with '{'"}},
    {file_of("[1,2]", 0), {"does not begin with '{'"}},
    {file_of("\xEF\xBB\xBF{}", 0), {"does not begin with '{'"}},
    {file_of("{", 0), {"not valid JSON", "the text ends early"}},
    {file_of("{} x", 0), {"not valid JSON"}},
    {file_of(std::string("{}\0\0", 4), 0), {"byte 2 is zero"}},
    {file_of("{\"\xFF\":1}", 0), {"not valid JSON"}},
    {file_of("{\"a\":" + std::string(100'000, '['), 0), {"nested deeper"}},
    bad_header(R"({"a":3})", 0, {"header field 'a' is the number 3; expected an object"}),
    bad_header(R"({"a":[]})", 0, {"header field 'a' is an array; expected an object"}),
    bad_header(R"({"__metadata__":"pt"})", 0, {"'__metadata__'", "expected an object"}),
    bad_header(R"({"__metadata__":{"k":1}})", 0,
               {"field '__metadata__.k' is the number 1; expected a string"}),
    bad_header(R"({"__metadata__":{"k":null}})", 0, {"'__metadata__.k'", "expected a string"}),
    bad_header(R"({"__metadata__":{},"__metadata__":{}})", 0, {"'__metadata__' appears twice"}),
    bad_header(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},
                   "a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
               8, {"key 'a' appears twice"}),
};

const BadFile kBadTensors[] = {
    bad_tensor(R"("shape":[1],"data_offsets":[0,4])", {"'dtype' is missing; expected BF16"}),
    bad_tensor(R"("dtype":32,"shape":[1],"data_offsets":[0,4])", {"'dtype' is the number 32"}),
    bad_tensor(R"("dtype":"F33","shape":[1],"data_offsets":[0,4])",
               {"'dtype' is the string 'F33'; expected BF16, F16, F32"}),
    bad_tensor(R"("dtype":"f32","shape":[1],"data_offsets":[0,4])", {"'f32'"}),
    bad_tensor(R"("dtype":"F32","data_offsets":[0,4])", {"'shape' is missing"}),
    bad_tensor(R"("dtype":"F32","shape":1,"data_offsets":[0,4])", {"'shape' is the number 1"}),
    bad_tensor(R"("dtype":"F32","shape":["1"],"data_offsets":[0,4])",
               {"'shape' holds the string '1'; expected an array, each element an integer"}),
    bad_tensor(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])", {"'shape' holds"}),
    bad_tensor(R"("dtype":"F32","shape":[1.0],"data_offsets":[0,4])", {"'shape' holds"}),
    bad_tensor(R"("dtype":"F32","shape":[18446744073709551616],"data_offsets":[0,4])",
               {"'shape' holds"}),
    bad_tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])",
               {"shape [2] of F32 takes 8 bytes, but data_offsets hold 4"}),
    bad_tensor(R"("dtype":"F32","shape":[0],"data_offsets":[0,4])", {"takes 0 bytes"}),
    // 2^62 elements of 4 bytes wrap to 0, 2^62 + 1 to 4.
    bad_tensor(R"("dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0])",
               {"no representable number of bytes"}),
    bad_tensor(R"("dtype":"F32","shape":[4611686018427387905],"data_offsets":[0,4])",
               {"no representable number of bytes"}),
    bad_tensor(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])",
               {"no representable number of bytes"}),
    bad_tensor(R"("dtype":"F4","shape":[7],"data_offsets":[0,4])",
               {"no representable number of bytes"}),
    bad_tensor(R"("dtype":"F32","shape":[1])", {"'data_offsets' is missing"}),
    bad_tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0])",
               {"data_offsets are [0]; expected [begin, end]"}),
    bad_tensor(R"("dtype":"F32","shape":[1],"data_offsets":[0,4,4])", {"data_offsets are"}),
    bad_tensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,0])",
               {"expected [begin, end] with begin <= end"}),
    bad_tensor(R"("dtype":"F32","shape":[1],"data_offsets":[-4,0])", {"'data_offsets' holds"}),
    bad_tensor(R"("dtype":"F32","shape":[8],"data_offsets":[18446744073709551584,0])",
               {"'data_offsets' holds the number 1.8446744073709552e+19"}),
    bad_tensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])",
               {"end at byte 8 of the data section, which has 4 bytes; expected a complete file"}),
    bad_tensor(
        R"("dtype":"F32","shape":[1],"data_offsets":[9223372036854775803,9223372036854775807])",
        {"end at byte 9223372036854775807"}),
    bad_tensor(R"("dtype":"F16","shape":[1],"data_offsets":[2,4])",
               {"begins at byte 2 of the data section; expected 0"}),
    bad_header(R"({"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}})", 4,
               {"the tensors end at byte 2 of the data section, which has 4 bytes"}),
    bad_header("{}", 1, {"the tensors end at byte 0 of the data section, which has 1 bytes"}),
    bad_header(R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},
                   "b":{"dtype":"F16","shape":[2],"data_offsets":[2,6]}})",
               6, {"tensor 'b'", "begins at byte 2 of the data section; expected 4"}),
    bad_header(R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},
                   "b":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}})",
               4, {"begins at byte 0 of the data section; expected 4"}),
    bad_header(R"({"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]},
                   "b":{"dtype":"F16","shape":[1],"data_offsets":[4,6]}})",
               6, {"tensor 'b'", "begins at byte 4 of the data section; expected 2"}),
    bad_header(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                   "b":{"dtype":"BF16","shape":[1],"data_offsets":[1,3]}})",
               3, {"tensor 'b'", "of the file; expected a multiple of 2"}),
    bad_header(R"({"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]},
                   "b":{"dtype":"F32","shape":[1],"data_offsets":[2,6]}})",
               6, {"tensor 'b'", "of the file; expected a multiple of 4"}),
    {file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4),
     {"tensor 'a'", "begins at byte 62 of the file; expected a multiple of 4"}},
};

INSTANTIATE_TEST_SUITE_P(OtherFormats, BadSafetensors, testing::ValuesIn(kNotSafetensors));
INSTANTIATE_TEST_SUITE_P(Headers, BadSafetensors, testing::ValuesIn(kBadHeaders));
INSTANTIATE_TEST_SUITE_P(Tensors, BadSafetensors, testing::ValuesIn(kBadTensors));

TEST(Safetensors, AnUnknownTypeIsUnsupportedNotDamaged) {
  const auto result = parse(
      bytes_of(aligned_file_of(R"({"a":{"dtype":"F128","shape":[1],"data_offsets":[0,16]}})", 16)));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kUnsupported);
}

TEST(Safetensors, CutAtAnyByteIsAnErrorThatSaysWhatIsMissing) {
  const std::string whole = aligned_file_of(
      R"({"__metadata__":{"format":"pt"},
          "norm":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},
          "embed":{"dtype":"BF16","shape":[3,4],"data_offsets":[16,40]}})",
      40);
  ASSERT_EQ(error_of(whole), "parsed");
  for (std::size_t len = 0; len < whole.size(); ++len) {
    const std::string error = error_of(whole.substr(0, len));
    ASSERT_THAT(error, AllOf(HasSubstr("w.safetensors: "), HasSubstr("expected"))) << len;
    if (len >= whole.size() - 40) {
      ASSERT_THAT(error, HasSubstr(len < whole.size() - 24 ? "tensor 'norm'" : "tensor 'embed'"));
    }
  }
}

// The time is that of the file's size, not of its square.
TEST(Safetensors, ReadsAsManyTensorsAsItAllowsInTimeOfTheirSize) {
  std::string header = "{";
  constexpr int kTensors = 65'536;
  for (int i = 0; i < kTensors; ++i) {
    header += (i == 0 ? "\"t" : ",\"t") + std::to_string(i) +
              "\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[" + std::to_string(2 * i) +
              "," + std::to_string(2 * i + 2) + "]}";
  }
  const auto bytes = bytes_of(aligned_file_of(header + "}", std::size_t{2} * kTensors));
  const auto contents = parse(bytes);
  ASSERT_TRUE(contents.ok()) << contents.error().message;
  EXPECT_EQ(contents.value().tensors.size(), static_cast<std::size_t>(kTensors));
}

// Neither may a few tensors hold millions of numbers.
TEST(Safetensors, RefusesMoreDimensionsThanAnyTensorHas) {
  const auto with_dims = [](int num_dims) {
    std::string shape = "1";
    for (int i = 1; i < num_dims; ++i) {
      shape += ",1";
    }
    return error_of(aligned_file_of(
        R"({"a":{"dtype":"F32","shape":[)" + shape + R"(],"data_offsets":[0,4]}})", 4));
  };
  EXPECT_EQ(with_dims(16), "parsed");
  EXPECT_THAT(with_dims(17), HasSubstr("w.safetensors: tensor 'a': shape has 17 dimensions; "
                                       "expected at most 16"));
}

// A header of its greatest length, 100 MB, could name 1.7 million empty tensors and take seconds.
TEST(Safetensors, RefusesMoreTensorsThanAnyModelHas) {
  constexpr int kMostTensors = 1 << 16;
  std::string header = "{";
  for (int i = 0; i < kMostTensors; ++i) {
    header += (i == 0 ? "\"" : ",\"") + std::to_string(i) +
              R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  }
  EXPECT_EQ(error_of(file_of(header + "}", 0)), "parsed");
  header += R"(,"one more":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})";
  EXPECT_THAT(error_of(file_of(header, 0)),
              AllOf(HasSubstr("w.safetensors: the header names more than 65536 tensors"),
                    HasSubstr("expected at most")));
}

}  // namespace
}  // namespace tidekv
