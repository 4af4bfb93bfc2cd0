#include "base/file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

namespace tidekv {
namespace {

using testing::HasSubstr;

// A folder of its own for every test.
class FileTest : public testing::Test {
 protected:
  FileTest() : folder_(testing::TempDir() + "tidekv_file_" + std::to_string(::getpid())) {
    std::filesystem::create_directories(folder_);
  }
  ~FileTest() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  std::string folder_;
};

std::string text_of(const MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

TEST_F(FileTest, MapsExactlyTheBytesOfTheFile) {
  const std::string text("a\0b\n\xFFz", 6);
  const auto file = MappedFile::open(write("six", text));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(text_of(file.value()), text);
  EXPECT_EQ(file.value().path(), folder_ + "/six");
}

TEST_F(FileTest, MappingSurvivesMoves) {
  auto first = MappedFile::open(write("one", "first"));
  auto second = MappedFile::open(write("two", "second"));
  ASSERT_TRUE(first.ok() && second.ok());
  MappedFile moved = std::move(first).value();
  EXPECT_EQ(text_of(moved), "first");
  moved = std::move(second).value();
  EXPECT_EQ(text_of(moved), "second");
  EXPECT_EQ(moved.path(), folder_ + "/two");
}

TEST_F(FileTest, OpeningAMissingFileNamesIt) {
  const auto file = MappedFile::open(folder_ + "/absent");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::kNotFound);
  EXPECT_THAT(file.error().message, HasSubstr("absent"));
}

TEST_F(FileTest, OpeningAnEmptyFileIsABadFile) {
  const auto file = MappedFile::open(write("empty", ""));
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().code, ErrorCode::kBadFile);
  EXPECT_THAT(file.error().message, HasSubstr("empty"));
}

TEST_F(FileTest, OpeningAFolderIsABadFile) {
  const auto mapped = MappedFile::open(folder_);
  ASSERT_FALSE(mapped.ok());
  EXPECT_EQ(mapped.error().code, ErrorCode::kBadFile);
  const auto read = read_small_file(folder_, 100);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kBadFile);
}

TEST_F(FileTest, ReadsASmallFileWhole) {
  const std::string text(10000, 'x');
  const auto read = read_small_file(write("small", text), 10000);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read.value(), text);
}

TEST_F(FileTest, ReadsAnEmptyFileAsAnEmptyText) {
  const auto read = read_small_file(write("empty", ""), 10);
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read.value().empty());
}

TEST_F(FileTest, RefusesAFileOverTheLimitAndSaysBothSizes) {
  const auto read = read_small_file(write("big", std::string(11, 'x')), 10);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kBadFile);
  EXPECT_THAT(read.error().message, HasSubstr("11"));
  EXPECT_THAT(read.error().message, HasSubstr("10"));
}

TEST_F(FileTest, ReadingAMissingFileIsNotFound) {
  const auto read = read_small_file(folder_ + "/absent", 10);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().code, ErrorCode::kNotFound);
}

TEST_F(FileTest, TellsFilesFromFolders) {
  const std::string path = write("here", "x");
  EXPECT_TRUE(file_exists(path));
  EXPECT_FALSE(is_directory(path));
  EXPECT_FALSE(file_exists(folder_));
  EXPECT_TRUE(is_directory(folder_));
  EXPECT_FALSE(file_exists(folder_ + "/absent"));
  EXPECT_FALSE(is_directory(folder_ + "/absent"));
}

TEST_F(FileTest, WhatIsNoFileIsStillThere) {
  const std::string path = folder_ + "/link";
  EXPECT_FALSE(something_at(path));
  ASSERT_EQ(::symlink((folder_ + "/absent").c_str(), path.c_str()), 0);
  EXPECT_FALSE(file_exists(path));
  EXPECT_TRUE(something_at(path));
  EXPECT_TRUE(something_at(folder_));
  EXPECT_EQ(read_small_file(path, 10).error().message,
            path + ": cannot open: it is a link that leads nowhere");
  ASSERT_EQ(::unlink(path.c_str()), 0);
}

TEST(JoinPath, PutsExactlyOneSlashBetween) {
  EXPECT_EQ(join_path("a", "b"), "a/b");
  EXPECT_EQ(join_path("a/", "b"), "a/b");
  EXPECT_EQ(join_path("", "b"), "b");
}

}  // namespace
}  // namespace tidekv
