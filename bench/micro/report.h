// Results as a Markdown table, line by line, or as one JSON object.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "machine_limits.h"
#include "measurement.h"

namespace tidekv::micro {

struct Setting {
  std::string backend;
  int num_threads = 0;
  double seconds = 0;  // of each measurement
};

std::string markdown_head(const Setting& setting, const Limits& limits);
std::string markdown_row(const std::string& name, const Measurement& measured);

std::string json_text(const Setting& setting, const Limits& limits,
                      const std::vector<std::pair<std::string, Measurement>>& results);

}  // namespace tidekv::micro
