// micro: every operation of the backend, beside what this machine can do at best.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <new>
#include <string>
#include <vector>

#include "cases.h"
#include "machine_limits.h"
#include "measurement.h"
#include "report.h"

namespace {

using tidekv::micro::Case;

struct Options {
  std::vector<std::string> filters;
  double seconds = 0.5;
  std::string format = "md";
  int threads = 0;
  bool list = false;
};

// True if the parts of `filter` between stars follow one another in `name`.
bool matches(const std::string& name, const std::string& filter) {
  std::size_t at = 0;
  for (std::size_t begin = 0; begin <= filter.size();) {
    const std::size_t end = std::min(filter.find('*', begin), filter.size());
    const std::size_t found = name.find(filter.substr(begin, end - begin), at);
    if (found == std::string::npos) {
      return false;
    }
    at = found + (end - begin);
    begin = end + 1;
  }
  return true;
}

std::vector<Case> chosen_cases(const Options& options) {
  std::vector<Case> cases;
  tidekv::micro::add_matmul_cases(cases);
  tidekv::micro::add_attention_cases(cases);
  tidekv::micro::add_compression_cases(cases);
  tidekv::micro::add_layer_cases(cases);
  const auto is_left_out = [&](const Case& one) {
    return !options.filters.empty() &&
           std::none_of(options.filters.begin(), options.filters.end(),
                        [&](const std::string& filter) { return matches(one.name, filter); });
  };
  cases.erase(std::remove_if(cases.begin(), cases.end(), is_left_out), cases.end());
  return cases;
}

int fail(const std::string& message) {
  fmt::print(stderr, "micro: {}\n", message);
  return 1;
}

int measure_all(const Options& options, const tidekv::BackendEntry& entry,
                const std::vector<Case>& cases) {
  // Far beyond any cache this process may use; a run that measures nothing needs no such memory.
  const bool measures = options.seconds > 0;
  const std::int64_t cold_bytes = measures ? std::int64_t{512} << 20 : 0;
  const std::int64_t stream_bytes = measures ? std::int64_t{1} << 30 : 0;
  const int threads = options.threads > 0 ? options.threads : tidekv::default_num_threads();
  tidekv::micro::Device device(entry, threads, cold_bytes);
  tidekv::micro::Limits limits(device.pool(), stream_bytes);
  const tidekv::micro::Setting setting{std::string(entry.name), threads, options.seconds};
  const bool markdown = options.format == "md";
  std::vector<std::pair<std::string, tidekv::micro::Measurement>> results;
  if (markdown) {
    fmt::print("{}", markdown_head(setting, limits));
  }
  for (const Case& one : cases) {
    const auto measured = measure(one, device, limits, options.seconds);
    if (markdown) {
      fmt::print("{}", markdown_row(one.name, measured));
      std::fflush(stdout);
    } else {
      results.emplace_back(one.name, measured);
    }
  }
  if (!markdown) {
    fmt::print("{}", json_text(setting, limits, results));
  }
  return std::fflush(stdout) == 0 ? 0 : fail("stdout cannot be written");
}

int run(const Options& options) {
  const std::vector<Case> cases = chosen_cases(options);
  if (cases.empty()) {
    return fail("--filter: no operation has that in its name; --list shows all names");
  }
  if (options.list) {
    for (const Case& one : cases) {
      fmt::print("{}\n", one.name);
    }
    return 0;
  }
  const auto entry = tidekv::choose_backend();
  return entry.ok() ? measure_all(options, *entry.value(), cases) : fail(entry.error().message);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app(
      "Speed of every backend operation, as a share of what this machine can do "
      "(docs/benchmarks.md).\n"
      "TIDEKV_BACKEND names the backend.");
  app.add_option(
      "--filter", options.filters,
      "only names that contain this; a * stands for anything; several: all that match one");
  app.add_option("--seconds", options.seconds, "for each operation; 0: run it once")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 3600.0));
  app.add_option("-o,--output", options.format, "md or json")
      ->capture_default_str()
      ->check(CLI::IsMember({"md", "json"}));
  app.add_option("-t,--threads", options.threads, "0: all CPUs")
      ->capture_default_str()
      ->check(CLI::Range(0, 1024));
  app.add_flag("--list", options.list, "print the names and measure nothing");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::bad_alloc&) {
    return fail("out of memory; the buffers of a measurement take about 3 GiB");
  }
}
