#include "io/tensor_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "io/shard_index.h"

namespace tidekv {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A folder of the test's own, removed at its end.
class TensorFileTest : public testing::Test {
 protected:
  TensorFileTest() {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = testing::TempDir() + "tidekv_" + info->name() + "_" + std::to_string(::getpid());
    std::filesystem::create_directories(folder_);
  }
  ~TensorFileTest() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }

  std::string error_of_folder() const {
    const Result<TensorFile> file = TensorFile::open(folder_);
    return file.ok() ? "opened" : file.error().message;
  }

  std::string folder_;
};

std::string file_of(std::string header, const std::string& data) {
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string out(8, '\0');
  out[0] = static_cast<char>(header.size() & 0xFF);
  out[1] = static_cast<char>(header.size() >> 8);
  return out + header + data;
}

// A file with one tensor, a BF16 vector [1] with this name.
std::string one_tensor(const std::string& name, const std::string& value = "ab") {
  return file_of("{\"" + name + R"(":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}})", value);
}

std::string tiny_file() {
  return file_of(R"({"__metadata__":{"format":"pt"},
                     "vector":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},
                     "matrix":{"dtype":"BF16","shape":[2,3],"data_offsets":[8,20]},
                     "cube":{"dtype":"F16","shape":[1,1,2],"data_offsets":[20,24]},
                     "scalar":{"dtype":"F32","shape":[],"data_offsets":[24,28]},
                     "ids":{"dtype":"I64","shape":[1],"data_offsets":[28,36]}})",
                 "abcdefghijklmnopqrstuvwxyz0123456789");
}

TEST_F(TensorFileTest, GivesMatricesOfOneAndTwoDimensions) {
  write("w.safetensors", tiny_file());
  const auto file = TensorFile::open(path("w.safetensors"));
  ASSERT_TRUE(file.ok()) << file.error().message;

  const HostView vector = file.value().matrix("vector").value();
  EXPECT_EQ(vector.rows, 1);
  EXPECT_EQ(vector.cols, 2);
  EXPECT_EQ(vector.dtype, DType::kF32);
  EXPECT_EQ(vector.data[0], std::byte{'a'});

  const HostView matrix = file.value().matrix("matrix").value();
  EXPECT_EQ(matrix.rows, 2);
  EXPECT_EQ(matrix.cols, 3);
  EXPECT_EQ(matrix.dtype, DType::kBF16);
  EXPECT_EQ(matrix.data[0], std::byte{'i'});
  EXPECT_EQ(matrix.data[matrix.num_bytes() - 1], std::byte{'t'});

  EXPECT_THAT(file.value().matrix("cube").error().message,
              AllOf(HasSubstr("w.safetensors"), HasSubstr("'cube' has 3 dimensions"),
                    HasSubstr("expected one or two")));
  EXPECT_THAT(file.value().matrix("scalar").error().message, HasSubstr("has 0 dimensions"));
  EXPECT_EQ(file.value().mapped_bytes(), static_cast<std::int64_t>(tiny_file().size()));
}

TEST_F(TensorFileTest, StaysValidWhenMoved) {
  write("w.safetensors", tiny_file());
  TensorFile first = TensorFile::open(path("w.safetensors")).value();
  const TensorFile second = std::move(first);
  EXPECT_EQ(second.find("vector").value().data[7], std::byte{'h'});
}

TEST_F(TensorFileTest, NamesATensorThatIsMissingOrOfAnotherType) {
  write("w.safetensors", tiny_file());
  const auto file = TensorFile::open(path("w.safetensors"));
  ASSERT_TRUE(file.ok());

  const auto missing = file.value().find("absent");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(missing.error().message, AllOf(HasSubstr("w.safetensors"), HasSubstr("'absent'")));

  const auto ids = file.value().matrix("ids");
  ASSERT_FALSE(ids.ok());
  EXPECT_EQ(ids.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(ids.error().message,
              AllOf(HasSubstr("'ids' is of type I64"), HasSubstr("expected BF16, F16 or F32")));
  EXPECT_FALSE(file.value().tensors().contains("ids"));
}

TEST_F(TensorFileTest, OpensTheNeedleModel) {
  const auto file = TensorFile::open(TIDEKV_SOURCE_DIR "/models/needle");
  ASSERT_TRUE(file.ok()) << file.error().message;
  // 9 tensors in each of 6 layers, the embeddings and the last norm.
  EXPECT_EQ(file.value().tensors().size(), 56U);
  const TensorInfo embed = file.value().find("model.embed_tokens.weight").value();
  EXPECT_EQ(embed.dtype, DType::kBF16);
  EXPECT_THAT(embed.shape, ElementsAre(4096, 256));
}

TEST_F(TensorFileTest, SaysWhatAFolderShouldHold) {
  EXPECT_THAT(error_of_folder(),
              AllOf(HasSubstr(folder_), HasSubstr("expected model.safetensors "
                                                  "or model.safetensors.index.json")));
  write("pytorch_model.bin", "x");
  EXPECT_THAT(error_of_folder(), HasSubstr("pytorch_model.bin is not read: convert it"));
}

TEST_F(TensorFileTest, NamesAFileThatDoesNotExist) {
  const auto file = TensorFile::open(path("none.safetensors"));
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(file.error().message, HasSubstr(path("none.safetensors")));
}

TEST_F(TensorFileTest, CutAtAnyByteIsAnErrorThatNamesTheFile) {
  const std::string whole = tiny_file();
  ASSERT_LE(whole.size(), 4096U);
  for (std::size_t len = 0; len < whole.size(); ++len) {
    write("model.safetensors", whole.substr(0, len));
    ASSERT_THAT(error_of_folder(), HasSubstr(path("model.safetensors"))) << len;
  }
  write("model.safetensors", whole);
  EXPECT_EQ(error_of_folder(), "opened");
}

constexpr const char* kIndex = "model.safetensors.index.json";

TEST_F(TensorFileTest, JoinsTheShardsOfAnIndex) {
  write("m-1.safetensors", one_tensor("a", "12"));
  write("m-2.safetensors", one_tensor("b", "34"));
  write(kIndex, R"({"metadata": {"total_size": 4},
                    "weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}})");
  const auto file = TensorFile::open(folder_);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file.value().tensors().size(), 2U);
  EXPECT_EQ(file.value().find("a").value().data[0], std::byte{'1'});
  EXPECT_EQ(file.value().find("b").value().data[0], std::byte{'3'});
  EXPECT_EQ(file.value().mapped_bytes(),
            static_cast<std::int64_t>(one_tensor("a").size() + one_tensor("b").size()));
}

TEST_F(TensorFileTest, PrefersTheSingleFileToAnIndex) {
  write("model.safetensors", one_tensor("single"));
  write(kIndex, "not JSON");
  EXPECT_TRUE(TensorFile::open(folder_).value().tensors().contains("single"));
}

TEST_F(TensorFileTest, CutsOfAnIndexAtAnyByteAreErrorsThatNameIt) {
  write("m-1.safetensors", one_tensor("a"));
  const std::string whole = R"({"metadata": {}, "weight_map": {"a": "m-1.safetensors"}})";
  for (std::size_t len = 0; len < whole.size(); ++len) {
    write(kIndex, whole.substr(0, len));
    ASSERT_THAT(error_of_folder(), AllOf(HasSubstr(path(kIndex)), HasSubstr("expected"))) << len;
  }
  write(kIndex, whole);
  EXPECT_EQ(error_of_folder(), "opened");
}

TEST_F(TensorFileTest, RefusesAShardThatIsMissingOrNotSafetensors) {
  write("m-1.safetensors", one_tensor("a"));
  write(kIndex, R"({"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}})");
  EXPECT_THAT(error_of_folder(),
              AllOf(HasSubstr(path(kIndex)), HasSubstr("weight_map names 'm-2.safetensors'"),
                    HasSubstr("expected every shard")));
  write("m-2.safetensors", "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_THAT(error_of_folder(),
              AllOf(HasSubstr(path("m-2.safetensors")), HasSubstr("Git LFS pointer")));
}

TEST_F(TensorFileTest, NamesTheFileThatATensorIsInOrMissingFrom) {
  write("m-1.safetensors", one_tensor("a"));
  write("m-2.safetensors", file_of(R"({"b":{"dtype":"F32","shape":[1,1,1],"data_offsets":[0,4]},
                                       "c":{"dtype":"F32","shape":[0],"data_offsets":[4,4]}})",
                                   "abcd"));
  write(kIndex, R"({"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors",
                                   "c": "m-2.safetensors"}})");
  const TensorFile shards = TensorFile::open(folder_).value();
  EXPECT_EQ(shards.path_of("a"), path("m-1.safetensors"));
  EXPECT_EQ(shards.path_of("b"), path("m-2.safetensors"));
  EXPECT_EQ(shards.path_of("c"), path("m-2.safetensors"));
  EXPECT_EQ(shards.path_of("none"), path(kIndex));
  EXPECT_THAT(shards.matrix("b").error().message, HasSubstr(path("m-2.safetensors") + ": tensor"));
  EXPECT_THAT(shards.matrix("none").error().message, HasSubstr(path(kIndex) + ": tensor 'none'"));

  write("model.safetensors", one_tensor("single"));
  EXPECT_THAT(TensorFile::open(folder_).value().find("none").error().message,
              HasSubstr(path("model.safetensors") + ": tensor 'none' is not in it"));
}

TEST_F(TensorFileTest, AFileThatCannotBeReadIsNoAbsentOne) {
  write("m-1.safetensors", one_tensor("a"));
  write(kIndex, R"({"weight_map": {"a": "m-1.safetensors"}})");
  std::filesystem::create_directory(path("model.safetensors"));
  EXPECT_THAT(error_of_folder(), HasSubstr(path("model.safetensors") + ": not a regular file"));
  std::filesystem::remove(path("model.safetensors"));
  std::filesystem::create_symlink(path("none"), path("model.safetensors"));
  EXPECT_THAT(error_of_folder(), HasSubstr("model.safetensors: cannot open: it is a link"));
}

TEST_F(TensorFileTest, RefusesATensorThatIsNotInItsShard) {
  write("m-1.safetensors", one_tensor("a"));
  write(kIndex, R"({"weight_map": {"a": "m-1.safetensors", "b": "m-1.safetensors"}})");
  EXPECT_THAT(error_of_folder(),
              AllOf(HasSubstr(path(kIndex)),
                    HasSubstr("places tensor 'b' in 'm-1.safetensors', which does not hold it")));
}

TEST_F(TensorFileTest, RefusesATensorInTwoShards) {
  const std::string both = file_of(R"({"a":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]},
                                       "b":{"dtype":"BF16","shape":[1],"data_offsets":[2,4]}})",
                                   "abcd");
  write("m-1.safetensors", one_tensor("a"));
  write("m-2.safetensors", both);
  write(kIndex, R"({"weight_map": {"a": "m-1.safetensors", "b": "m-2.safetensors"}})");
  EXPECT_THAT(error_of_folder(), AllOf(HasSubstr("tensor 'a' is in shard 'm-2.safetensors' but "
                                                 "placed in 'm-1.safetensors' by weight_map"),
                                       HasSubstr("expected it in one shard")));
}

TEST_F(TensorFileTest, RefusesATensorTheIndexDoesNotKnow) {
  write("m-1.safetensors", one_tensor("stray"));
  write(kIndex, R"({"weight_map": {"a": "m-1.safetensors"}})");
  EXPECT_THAT(error_of_folder(),
              HasSubstr("tensor 'stray' is in shard 'm-1.safetensors' but not in weight_map"));
}

// The files they lead to exist: only the name can be the reason.
TEST_F(TensorFileTest, RefusesShardNamesThatLeadOutOfTheFolder) {
  std::filesystem::create_directories(path("inner"));
  write("out.safetensors", one_tensor("a"));
  write("inner/.hidden.safetensors", one_tensor("a"));
  write("inner/a b.safetensors", one_tensor("a"));
  write("inner/m.bin", one_tensor("a"));
  const std::string absolute = path("out.safetensors");
  for (const std::string& name :
       {std::string("../out.safetensors"), absolute, std::string("./../out.safetensors"),
        std::string("../inner/../out.safetensors"), std::string(".hidden.safetensors"),
        std::string("a b.safetensors"), std::string("m.bin"), std::string(".."), std::string(""),
        std::string(".safetensors"), std::string("..\\\\out.safetensors")}) {
    write(std::string("inner/") + kIndex, R"({"weight_map": {"a": ")" + name + "\"}}");
    const auto file = TensorFile::open(path("inner"));
    ASSERT_FALSE(file.ok()) << name;
    EXPECT_THAT(file.error().message,
                AllOf(HasSubstr(path("inner")), HasSubstr("field 'weight_map.a'"),
                      HasSubstr("expected the plain name of a .safetensors file")))
        << name;
  }
}

TEST_F(TensorFileTest, RefusesAnIndexWithoutAUsableMap) {
  for (const char* index :
       {"{}", R"({"weight_map": null})", R"({"weight_map": {}})", R"({"weight_map": []})",
        R"({"weight_map": {"a": 1}})", R"({"weight_map": {"a": null}})",
        R"({"weight_map": {"a": "m.safetensors", "a": "m.safetensors"}})", "[]"}) {
    write(kIndex, index);
    EXPECT_THAT(error_of_folder(), HasSubstr(path(kIndex))) << index;
    EXPECT_THAT(error_of_folder(), testing::ContainsRegex("expected|appears twice")) << index;
    EXPECT_THAT(error_of_folder(), testing::Not(HasSubstr("is an object; expected an object")));
  }
}

// A look-up that walks the list for each entry would take minutes.
TEST(ShardIndex, ReadsAHundredThousandEntries) {
  std::string json = R"({"weight_map": {)";
  for (int i = 0; i < 100'000; ++i) {
    json += (i == 0 ? "\"t" : ", \"t") + std::to_string(i) + R"(": "m-1.safetensors")";
  }
  const auto index = parse_shard_index(json + "}}", "i.json");
  ASSERT_TRUE(index.ok()) << index.error().message;
  EXPECT_EQ(index.value().size(), 100'000U);
  EXPECT_EQ(index.value().at("t99999"), "m-1.safetensors");
}

}  // namespace
}  // namespace tidekv
