#include "io/gguf_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gguf/gguf_writer.h"
#include "io/tensor_file.h"

namespace tidekv {
namespace {

using gguf::GgufWriter;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A folder of the test's own, removed at its end.
class GgufModelTest : public testing::Test {
 protected:
  GgufModelTest() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "tidekv_" + info->name() + "_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }
  ~GgufModelTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }

  std::string error_of(const std::string& opened) const {
    const Result<TensorFile> file = TensorFile::open(opened);
    return file.ok() ? "opened" : file.error().message;
  }

  std::string folder_;
};

std::string one_tensor(const std::string& name, const std::string& value = "abcd") {
  return GgufWriter().string("general.name", name).tensor(name, {1}, DType::kF32, value).file();
}

// Part `number`, from 0, of a model of three parts and as many tensors.
std::string part(std::uint16_t number, const std::string& tensor) {
  GgufWriter writer;
  if (number == 0) {
    writer.string("general.architecture", "llama");
  }
  return writer.uint16("split.no", number)
      .uint16("split.count", 3)
      .int32("split.tensors.count", 3)
      .tensor(tensor, {1}, DType::kF32, tensor + "...")
      .file();
}

constexpr const char* kParts[] = {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf",
                                  "m-00003-of-00003.gguf"};

class SplitGgufTest : public GgufModelTest {
 protected:
  SplitGgufTest() {
    write(kParts[0], part(0, "a"));
    write(kParts[1], part(1, "b"));
    write(kParts[2], part(2, "c"));
  }
};

TEST_F(GgufModelTest, IsToldFromSafetensorsByContent) {
  write("weights.bin", one_tensor("t"));
  const auto file = TensorFile::open(path("weights.bin"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  ASSERT_NE(file.value().metadata(), nullptr);
  EXPECT_EQ(file.value().metadata()->reader().string("general.name", "").value(), "t");
  EXPECT_EQ(file.value().find("t").value().data[0], std::byte{'a'});

  const std::string header = R"({"s":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  )";
  write("weights.gguf", gguf::number(std::uint64_t{header.size()}) + header + "efgh");
  const auto other = TensorFile::open(path("weights.gguf"));
  ASSERT_TRUE(other.ok()) << other.error().message;
  EXPECT_EQ(other.value().metadata(), nullptr);
  EXPECT_TRUE(other.value().tensors().contains("s"));
}

TEST_F(GgufModelTest, GivesQuantisedMatrices) {
  write("m.gguf", GgufWriter().tensor("q", {2, 256}, DType::kQ4K, std::string(288, 'q')).file());
  const auto file = TensorFile::open(path("m.gguf"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  const HostView matrix = file.value().matrix("q").value();
  EXPECT_EQ(matrix.dtype, DType::kQ4K);
  EXPECT_EQ(matrix.rows, 2);
  EXPECT_EQ(matrix.cols, 256);
  EXPECT_EQ(matrix.num_bytes(), 288);
}

TEST_F(GgufModelTest, KeepsItsMetadataWhenMoved) {
  write("m.gguf", GgufWriter().strings("words", {"one", "two"}).file());
  TensorFile first = TensorFile::open(path("m.gguf")).value();
  const TensorFile second = std::move(first);
  EXPECT_THAT(second.metadata()->strings("words").value(), ElementsAre("one", "two"));
}

TEST_F(GgufModelTest, NamesATensorThatIsMissingOrOfAnotherType) {
  write("m.gguf", gguf::padded(gguf::header(3, 1, 0) + gguf::description("t", {256}, 17, 0), 32) +
                      std::string(74, 'x'));
  const auto file = TensorFile::open(path("m.gguf"));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file.value().find("absent").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(file.value().find("t").error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(file.value().find("t").error().message,
              HasSubstr("tensor 't' is of type IQ2_XS; expected F32, F16, BF16, Q8_0, Q4_0, Q4_1, "
                        "Q5_0, Q5_1, Q4_K, Q5_K or Q6_K"));
  EXPECT_EQ(file.value().other_dtypes().at("t"), "IQ2_XS");
}

// What a download leaves behind under the model's name.
TEST_F(GgufModelTest, SaysWhatAFileIsThatIsNone) {
  write("m.gguf", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n");
  EXPECT_THAT(error_of(path("m.gguf")),
              AllOf(HasSubstr(path("m.gguf")), HasSubstr("expected a GGUF file"),
                    HasSubstr("Git LFS pointer")));
  write("m.gguf", "GG");
  EXPECT_THAT(error_of(path("m.gguf")), HasSubstr("expected a GGUF file"));
}

TEST_F(SplitGgufTest, IsOpenedWholeFromAnyPart) {
  for (const char* given : kParts) {
    const auto file = TensorFile::open(path(given));
    ASSERT_TRUE(file.ok()) << file.error().message;
    ASSERT_EQ(file.value().tensors().size(), 3U);
    EXPECT_EQ(file.value().find("a").value().data[0], std::byte{'a'});
    EXPECT_EQ(file.value().find("b").value().data[0], std::byte{'b'});
    EXPECT_EQ(file.value().find("c").value().data[0], std::byte{'c'});
    EXPECT_EQ(file.value().metadata()->reader().string("general.architecture", "").value(),
              "llama");
    EXPECT_EQ(file.value().mapped_bytes(),
              static_cast<std::int64_t>(part(0, "a").size() + 2 * part(1, "b").size()));
  }
}

TEST_F(SplitGgufTest, NamesAPartThatIsMissing) {
  std::filesystem::remove(path(kParts[1]));
  EXPECT_THAT(error_of(path(kParts[0])),
              AllOf(HasSubstr(path(kParts[0])), HasSubstr("part 2 of 3 is missing"),
                    HasSubstr("expected " + path(kParts[1]))));
  EXPECT_THAT(error_of(path(kParts[2])), HasSubstr("part 2 of 3 is missing"));
}

TEST_F(SplitGgufTest, NeedsNumbersInItsNames) {
  for (const char* name : {"m.gguf", "m-00001-of-0003.gguf", "m-00000-of-00003.gguf",
                           "m-00004-of-00003.gguf", "m-0000x-of-00003.gguf", "m-00001-of-00003",
                           "m-+0001-of-00003.gguf", "00001-of-00003.gguf"}) {
    write(name, part(0, "a"));
    EXPECT_THAT(error_of(path(name)),
                AllOf(HasSubstr(path(name)), HasSubstr("a part of a model split in 3; expected a "
                                                       "file name like name-00001-of-00003.gguf")))
        << name;
  }
}

TEST_F(SplitGgufTest, RefusesPartsThatDoNotBelongTogether) {
  write(kParts[1], part(2, "b"));
  EXPECT_THAT(error_of(path(kParts[0])),
              AllOf(HasSubstr(path(kParts[1])),
                    HasSubstr("field 'split.no' is the number 2; expected 1, one less than in")));
  write(kParts[1], one_tensor("b"));
  EXPECT_THAT(error_of(path(kParts[0])),
              AllOf(HasSubstr(path(kParts[1])), HasSubstr("field 'split.count' is missing")));
  write(kParts[1], part(1, "a"));
  EXPECT_THAT(error_of(path(kParts[0])),
              AllOf(HasSubstr(path(kParts[1])),
                    HasSubstr("tensor 'a' is in an earlier part too; expected it in one part")));
  write(kParts[1], "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_THAT(error_of(path(kParts[0])),
              AllOf(HasSubstr(path(kParts[1])), HasSubstr("Git LFS pointer")));
  write("m-00001-of-00004.gguf", part(0, "a"));
  EXPECT_THAT(error_of(path("m-00001-of-00004.gguf")),
              HasSubstr("field 'split.count' is the number 3; expected 4, as in the file's name"));
}

TEST_F(SplitGgufTest, RefusesAnotherNumberOfTensorsThanItCounts) {
  write(kParts[0], GgufWriter()
                       .uint16("split.no", 0)
                       .uint16("split.count", 3)
                       .int32("split.tensors.count", 4)
                       .tensor("a", {1}, DType::kF32, "abcd")
                       .file());
  EXPECT_THAT(error_of(path(kParts[0])),
              AllOf(HasSubstr(path(kParts[0])),
                    HasSubstr("field 'split.tensors.count' is the number 4; expected 3")));
}

// Else two models whose parts fit one another would run as one.
TEST_F(SplitGgufTest, RefusesPartsThatSayTheyAreOfAnotherModel) {
  const auto second = [](const std::string& key, const std::string& value) {
    return GgufWriter()
        .uint16("split.no", 1)
        .uint16("split.count", 3)
        .string(key, value)
        .strings("tokens", {"x"})
        .tensor("b", {1}, DType::kF32, "b...")
        .file();
  };
  write(kParts[0], GgufWriter()
                       .string("general.architecture", "llama")
                       .strings("tokens", {"x"})
                       .uint16("split.no", 0)
                       .uint16("split.count", 3)
                       .tensor("a", {1}, DType::kF32, "a...")
                       .file());
  write(kParts[1], second("general.architecture", "llama"));
  EXPECT_EQ(error_of(path(kParts[0])), "opened");
  write(kParts[1], second("general.name", "a name says nothing of the arithmetic"));
  EXPECT_EQ(error_of(path(kParts[0])), "opened");

  write(kParts[1], second("general.architecture", "qwen2"));
  EXPECT_THAT(error_of(path(kParts[0])),
              AllOf(HasSubstr(path(kParts[1])), HasSubstr("field 'general.architecture'"),
                    HasSubstr("expected the string 'llama', as in the first part")));
  write(kParts[1], second("llama.rope.scaling.type", "yarn"));
  EXPECT_THAT(error_of(path(kParts[0])),
              AllOf(HasSubstr(path(kParts[1])), HasSubstr("field 'llama.rope.scaling.type'"),
                    HasSubstr("expected no such field, as in the first part")));
  write(kParts[1], GgufWriter()
                       .uint16("split.no", 1)
                       .uint16("split.count", 3)
                       .strings("tokens", {"y"})
                       .tensor("b", {1}, DType::kF32, "b...")
                       .file());
  EXPECT_THAT(error_of(path(kParts[0])), HasSubstr("field 'tokens' is an array; expected"));
}

TEST_F(SplitGgufTest, CutsOfAnyPartAtAnyByteAreErrorsThatNameIt) {
  for (std::uint16_t i = 0; i < 3; ++i) {
    const std::string whole = part(i, std::string(1, static_cast<char>('a' + i)));
    ASSERT_LE(whole.size(), 4096U);
    for (std::size_t len = 1; len < whole.size(); ++len) {
      write(kParts[i], whole.substr(0, len));
      ASSERT_THAT(error_of(path(kParts[0])),
                  AllOf(HasSubstr(path(kParts[i])), HasSubstr("expected")))
          << i << " " << len;
    }
    write(kParts[i], "");
    EXPECT_THAT(error_of(path(kParts[0])),
                AllOf(HasSubstr(path(kParts[i])), HasSubstr("the file is empty")));
    write(kParts[i], whole);
  }
  EXPECT_EQ(error_of(path(kParts[0])), "opened");
}

TEST_F(SplitGgufTest, IsOneModelOfItsFolder) {
  EXPECT_THAT(gguf_models_in(folder_), ElementsAre(kParts[0]));
  EXPECT_EQ(error_of(folder_), "opened");
}

TEST_F(GgufModelTest, IsOpenedByItsFolderIfItIsTheOnlyOne) {
  write("one.gguf", one_tensor("t"));
  write("README.md", "text");
  EXPECT_EQ(error_of(folder_), "opened");

  write("two.gguf", one_tensor("t"));
  EXPECT_THAT(
      error_of(folder_),
      AllOf(HasSubstr(folder_), HasSubstr("or one GGUF model"),
            HasSubstr("it holds GGUF files, give the path of one: 'one.gguf', 'two.gguf'")));
}

TEST_F(GgufModelTest, IsNotTakenForTheWeightsOfAHuggingFaceFolder) {
  write("one.gguf", one_tensor("t"));
  write("config.json", "{}");
  EXPECT_THAT(error_of(folder_), HasSubstr("give the path of one: 'one.gguf'"));
}

}  // namespace
}  // namespace tidekv
