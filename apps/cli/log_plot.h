// Panels of lines over a logarithmic axis, as SVG. Below the axis there is a line for 0 itself.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tidekv::cli {

struct PlotSeries {
  std::string name;
  int style = 0;  // colour and mark; the same name has the same in every panel
  std::vector<std::pair<double, double>> points;  // x, y; a y that is not finite is left out
};

enum class PlotScale { kLinear, kLogarithmic };

struct PlotPanel {
  std::string title;
  std::string x_label;
  std::string y_label;
  PlotScale x_scale = PlotScale::kLinear;
  std::vector<std::pair<double, std::string>> x_ticks;
  std::vector<PlotSeries> series;
  std::string zero_label;  // of what is 0 everywhere; empty: nothing is
};

// Panels side by side, with one legend below them and the same y axis.
std::string plot_svg(const std::string& title, const std::vector<PlotPanel>& panels);

}  // namespace tidekv::cli
