# Every dependency, and why. All are Debian packages; nothing is fetched or vendored.
find_package(Threads REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)  # JSON: configs, safetensors header, tokenizer, reports
find_package(PkgConfig REQUIRED)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)  # pre-tokeniser patterns of BPE
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)  # Unicode's NFC, for Qwen
find_package(CLI11 REQUIRED)               # command line of apps/cli
find_package(fmt REQUIRED)                 # formatting (no <format> in g++ 12)
if(TIDEKV_BUILD_TESTS)
  find_package(GTest REQUIRED)             # tests
endif()
