#include "log_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tidekv::cli {
namespace {

// Pixels.
constexpr double kPanelWidth = 470;
constexpr double kLeft = 66;  // of the axis within its panel
constexpr double kRight = 18;
constexpr double kTop = 66;
constexpr double kPlotHeight = 250;
constexpr double kZeroGap = 30;  // from the axis's lower end to the line for 0
constexpr double kBelow = 54;    // ticks and label of x
constexpr double kLegendRow = 22;
constexpr double kLegendColumn = 150;

// Dark enough on white, bright enough on black.
constexpr std::array kColours = {"#c8433f", "#2b7bba", "#d9820f", "#2f9a5d", "#8b5cc4", "#8a7a12"};
constexpr int kNumMarks = 4;

constexpr const char* kStyle =
    "<style>\n"
    "text { font-family: Helvetica, Arial, sans-serif; font-size: 13px; fill: #24292f; }\n"
    ".title { font-size: 15px; font-weight: bold; }\n"
    ".note { stroke: #ffffff; stroke-width: 4; paint-order: stroke; }\n"
    ".ground { fill: #ffffff; }\n"
    ".axis { stroke: #57606a; stroke-width: 1; fill: none; }\n"
    ".grid { stroke: #d0d7de; stroke-width: 1; fill: none; }\n"
    ".zero { stroke: #57606a; stroke-width: 2; stroke-dasharray: 7 4; fill: none; }\n"
    "@media (prefers-color-scheme: dark) {\n"
    "  text { fill: #e6edf3; }\n"
    "  .note { stroke: #0d1117; }\n"
    "  .ground { fill: #0d1117; }\n"
    "  .axis { stroke: #8d96a0; }\n"
    "  .grid { stroke: #30363d; }\n"
    "  .zero { stroke: #8d96a0; }\n"
    "}\n"
    "</style>\n";

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string text_at(double x, double y, const char* anchor, const std::string& text) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\">{}</text>\n", x, y, anchor,
                     escaped(text));
}

std::string line(const char* style, double x1, double y1, double x2, double y2) {
  return fmt::format(
      "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n", style, x1,
      y1, x2, y2);
}

// Circle, square, triangle, diamond.
std::string mark(int style, double x, double y) {
  const char* colour = kColours[static_cast<std::size_t>(style) % kColours.size()];
  switch (style % kNumMarks) {
    case 0:
      return fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"/>\n", x, y,
                         colour);
    case 1:
      return fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"6.6\" height=\"6.6\" fill=\"{}\"/>\n", x - 3.3,
          y - 3.3, colour);
    case 2:
      return fmt::format("<path d=\"M{:.1f} {:.1f}l4.4 7.6h-8.8z\" fill=\"{}\"/>\n", x, y - 4.8,
                         colour);
    default:
      return fmt::format("<path d=\"M{:.1f} {:.1f}l4.6 4.6l-4.6 4.6l-4.6 -4.6z\" fill=\"{}\"/>\n",
                         x, y - 4.6, colour);
  }
}

// Whole powers of ten around all positive values.
struct Decades {
  int least = 0;
  int most = 0;
};

Decades decades_of(const std::vector<PlotPanel>& panels) {
  constexpr int kMost = 8;  // what is smaller is drawn at the lower end
  double least = INFINITY;
  double most = 0;
  for (const PlotPanel& panel : panels) {
    for (const PlotSeries& series : panel.series) {
      for (const auto& [x, y] : series.points) {
        if (std::isfinite(y) && y > 0) {
          least = std::min(least, y);
          most = std::max(most, y);
        }
      }
    }
  }
  if (most == 0) {
    return {-1, 0};
  }
  const int top = static_cast<int>(std::ceil(std::log10(most)));
  const int bottom = static_cast<int>(std::floor(std::log10(least)));
  return {std::max(std::min(bottom, top - 1), top - kMost), top};
}

std::string decade_text(int decade) {
  return decade < -4 || decade > 4 ? fmt::format("1e{}", decade)
                                   : fmt::format("{:g}", std::pow(10.0, decade));
}

class PanelDrawing {
 public:
  PanelDrawing(const PlotPanel& panel, const Decades& decades, double offset)
      : panel_(&panel), decades_(decades), offset_(offset) {
    double least = std::numeric_limits<double>::infinity();
    double most = -least;
    for (const auto& [x, label] : panel.x_ticks) {
      least = std::min(least, scaled(x));
      most = std::max(most, scaled(x));
    }
    for (const PlotSeries& series : panel.series) {
      for (const auto& [x, y] : series.points) {
        least = std::min(least, scaled(x));
        most = std::max(most, scaled(x));
      }
    }
    const double margin = most > least ? (most - least) * 0.03 : 0.5;
    x_least_ = least - margin;
    x_most_ = most + margin;
  }

  std::string svg() const {
    std::string out = axes();
    for (const PlotSeries& series : panel_->series) {
      out += curve(series);
    }
    return out + note();
  }

 private:
  double left() const { return offset_ + kLeft; }
  double right() const { return offset_ + kPanelWidth - kRight; }
  static double bottom() { return kTop + kPlotHeight; }
  static double zero() { return bottom() + kZeroGap; }

  double scaled(double x) const {
    return panel_->x_scale == PlotScale::kLogarithmic ? std::log2(x) : x;
  }
  double at_x(double x) const {
    return left() + (scaled(x) - x_least_) / (x_most_ - x_least_) * (right() - left());
  }
  double at_y(double y) const {
    if (y == 0) {
      return zero();
    }
    const double share = (std::log10(y) - decades_.least) / (decades_.most - decades_.least);
    return bottom() - std::clamp(share, 0.0, 1.0) * kPlotHeight;
  }

  std::string axes() const {
    std::string out;
    for (int decade = decades_.least; decade <= decades_.most; ++decade) {
      const double y = at_y(std::pow(10.0, decade));
      out += line("grid", left(), y, right(), y);
      out += text_at(left() - 8, y + 4.5, "end", decade_text(decade));
    }
    out += line("zero", left(), zero(), right(), zero());
    out += text_at(left() - 8, zero() + 4.5, "end", "0");
    out += line("axis", left(), kTop, left(), bottom());
    out += line("axis", left(), zero() + 10, right(), zero() + 10);
    for (const auto& [x, label] : panel_->x_ticks) {
      out += line("axis", at_x(x), zero() + 10, at_x(x), zero() + 15);
      out += text_at(at_x(x), zero() + 30, "middle", label);
    }
    out += text_at((left() + right()) / 2, zero() + 50, "middle", panel_->x_label);
    out += text_at((left() + right()) / 2, kTop - 16, "middle", panel_->title);
    out += fmt::format(
        "<text transform=\"translate({:.1f} {:.1f}) rotate(-90)\" "
        "text-anchor=\"middle\">{}</text>\n",
        offset_ + 16, kTop + kPlotHeight / 2, escaped(panel_->y_label));
    return out;
  }

  // Over the lines.
  std::string note() const {
    return panel_->zero_label.empty() ? ""
                                      : fmt::format(
                                            "<text class=\"note\" x=\"{:.1f}\" y=\"{:.1f}\" "
                                            "text-anchor=\"end\">{}</text>\n",
                                            right() - 4, zero() - 8, escaped(panel_->zero_label));
  }

  std::string curve(const PlotSeries& series) const {
    std::string path;
    std::string marks;
    for (const auto& [x, y] : series.points) {
      if (!std::isfinite(y)) {
        continue;
      }
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", at_x(x), at_y(y));
      marks += mark(series.style, at_x(x), at_y(y));
    }
    return fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"/>\n{}",
                       path, kColours[static_cast<std::size_t>(series.style) % kColours.size()],
                       marks);
  }

  const PlotPanel* panel_;
  Decades decades_;
  double offset_;
  double x_least_ = 0;
  double x_most_ = 1;
};

std::string legend(const std::vector<PlotSeries>& series, double width, double top) {
  const auto columns =
      static_cast<std::size_t>(std::max(1.0, std::floor((width - kLeft - kRight) / kLegendColumn)));
  std::string out;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const double x = kLeft + kLegendColumn * static_cast<double>(i % columns);
    const std::size_t row = i / columns;
    const double y = top + kLegendRow * static_cast<double>(row);
    out += fmt::format(
        "<path d=\"M{:.1f} {:.1f}h26\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\"/>\n", x, y,
        kColours[static_cast<std::size_t>(series[i].style) % kColours.size()]);
    out += mark(series[i].style, x + 13, y) + text_at(x + 33, y + 4.5, "start", series[i].name);
  }
  return out;
}

// One of each name.
std::vector<PlotSeries> named_series(const std::vector<PlotPanel>& panels) {
  std::vector<PlotSeries> all;
  for (const PlotPanel& panel : panels) {
    for (const PlotSeries& series : panel.series) {
      if (std::none_of(all.begin(), all.end(),
                       [&](const PlotSeries& other) { return other.name == series.name; })) {
        all.push_back(series);
      }
    }
  }
  return all;
}

}  // namespace

std::string plot_svg(const std::string& title, const std::vector<PlotPanel>& panels) {
  const double width = kPanelWidth * static_cast<double>(panels.size());
  const std::vector<PlotSeries> named = named_series(panels);
  const double legend_top = kTop + kPlotHeight + kZeroGap + kBelow + 26;
  const double columns = std::max(1.0, std::floor((width - kLeft - kRight) / kLegendColumn));
  const double rows = std::ceil(static_cast<double>(named.size()) / columns);
  const double height = legend_top + rows * kLegendRow;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\">\n<title>{2}</title>\n",
      width, height, escaped(title));
  out += kStyle;
  out +=
      fmt::format("<rect class=\"ground\" width=\"{:.0f}\" height=\"{:.0f}\"/>\n", width, height);
  out +=
      fmt::format("<text class=\"title\" x=\"{:.1f}\" y=\"24\" text-anchor=\"middle\">{}</text>\n",
                  width / 2, escaped(title));
  const Decades decades = decades_of(panels);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    out += PanelDrawing(panels[i], decades, kPanelWidth * static_cast<double>(i)).svg();
  }
  return out + legend(named, width, legend_top) + "</svg>\n";
}

}  // namespace tidekv::cli
