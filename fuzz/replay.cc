// The fuzz targets without a fuzzer: runs every file of the given folders, and those named valid*
// also cut at every byte. A fault ends the program, under sanitizers also one that is silent.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "fuzz_target.h"

namespace {

// On a copy of exactly this size: a read past the end is then past the allocation.
void run(const std::vector<std::uint8_t>& bytes, std::size_t size) {
  const std::vector<std::uint8_t> input(bytes.begin(),
                                        bytes.begin() + static_cast<std::ptrdiff_t>(size));
  LLVMFuzzerTestOneInput(input.data(), input.size());
}

int run_folder(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const auto& file : files) {
    std::printf("%s\n", file.c_str());
    std::fflush(stdout);  // the last name printed is the one that failed
    std::ifstream in(file, std::ios::binary);
    const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
    const bool cut = file.filename().string().starts_with("valid");
    for (std::size_t size = cut ? 0 : bytes.size(); size <= bytes.size(); ++size) {
      run(bytes, size);
    }
  }
  return static_cast<int>(files.size());
}

}  // namespace

int main(int argc, char** argv) {
  int num_files = 0;
  for (int i = 1; i < argc; ++i) {
    num_files += run_folder(argv[i]);
  }
  std::printf("%d files\n", num_files);
  return num_files > 0 ? 0 : 1;
}
