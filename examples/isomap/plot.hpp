// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Points in the plane as an SVG: a circle for each, coloured by its digit, axes of one scale, and a legend next to the plot.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace isomap {

struct Point {
  double x, y;
};

namespace detail {

// Ten colours that differ in hue and in lightness.
inline constexpr const char* colours[10] = {"#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "#59a14f",
                                            "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#5a5a5a"};

/// The distance of ticks on an axis of this length: 1, 2 or 5 times a power of ten, 4 to 10 of them.
inline double tick_of(double length) {
  const double power = std::pow(10, std::floor(std::log10(length / 4)));
  for (const int factor : {5, 2})
    if (factor * power <= length / 4) return factor * power;
  return power;
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace detail

/// Writes the file. Throws std::runtime_error if it cannot be opened.
inline void write_plot(const char* path, const std::vector<Point>& points, const std::vector<int>& digits) {
  const std::unique_ptr<std::FILE, detail::Close> owner(std::fopen(path, "w"));
  std::FILE* const file = owner.get();
  if (!file) throw std::runtime_error(std::string("cannot write '") + path + "'");

  // Pixels: the plot's left and upper edges, its width, what surrounds the points in it, the legend's width, the lower margin.
  constexpr double left = 80, top = 84, width = 680, padding = 16, legend = 96, bottom = 64;
  const auto by_x = [](Point a, Point b) { return a.x < b.x; };
  const auto by_y = [](Point a, Point b) { return a.y < b.y; };
  const auto [west, east] = std::minmax_element(points.begin(), points.end(), by_x);
  const auto [south, north] = std::minmax_element(points.begin(), points.end(), by_y);
  const double scale = (width - 2 * padding) / (east->x - west->x);  // of both axes
  const double height = (north->y - south->y) * scale + 2 * padding;
  const auto x_of = [&](double x) { return left + padding + (x - west->x) * scale; };
  const auto y_of = [&](double y) { return top + padding + (north->y - y) * scale; };

  std::fprintf(
      file,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"sans-serif\" font-size=\"14\" "
      "fill=\"#333333\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
      left + width + legend, top + height + bottom);
  std::fprintf(
      file,
      "<text x=\"%.0f\" y=\"34\" font-size=\"20\" font-weight=\"bold\">Isomap of %zu handwritten digits</text>\n"
      "<text x=\"%.0f\" y=\"60\">Geodesic distances over the 10 nearest neighbours, in the plane. A circle is an image."
      "</text>\n",
      left, points.size(), left);

  // Grid, ticks and frame.
  const double tick = detail::tick_of(std::max(east->x - west->x, north->y - south->y));
  for (double x = std::ceil(west->x / tick) * tick; x <= east->x; x += tick)
    std::fprintf(
        file,
        "<path d=\"M%.1f %.1fV%.1f\" stroke=\"#e4e4e4\"/><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>\n",
        x_of(x), top, top + height, x_of(x), top + height + 20, x);
  for (double y = std::ceil(south->y / tick) * tick; y <= north->y; y += tick)
    std::fprintf(
        file, "<path d=\"M%.1f %.1fH%.1f\" stroke=\"#e4e4e4\"/><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
        left, y_of(y), left + width, left - 8, y_of(y) + 5, y);
  std::fprintf(file,
               "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"none\" stroke=\"#888888\"/>\n"
               "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">first coordinate</text>\n"
               "<text transform=\"translate(22 %.1f) rotate(-90)\" text-anchor=\"middle\">second coordinate</text>\n",
               left, top, width, height, left + width / 2, top + height + 46, top + height / 2);

  std::fprintf(file, "<g stroke=\"white\" stroke-width=\"0.6\">\n");
  for (std::size_t i = 0; i < points.size(); ++i)
    std::fprintf(file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\" fill=\"%s\" fill-opacity=\"0.85\"/>\n", x_of(points[i].x),
                 y_of(points[i].y), detail::colours[digits[i]]);
  std::fprintf(file, "</g>\n");

  const double column = left + width + 28;
  std::fprintf(file, "<text x=\"%.0f\" y=\"%.0f\" font-weight=\"bold\">digit</text>\n", column - 6, top + 14);
  for (int digit = 0; digit < 10; ++digit) {
    const double row = top + 40 + 26 * digit;
    std::fprintf(file, "<circle cx=\"%.0f\" cy=\"%.0f\" r=\"6\" fill=\"%s\"/><text x=\"%.0f\" y=\"%.0f\">%d</text>\n",
                 column, row, detail::colours[digit], column + 16, row + 5, digit);
  }
  std::fprintf(file, "</svg>\n");
}

}  // namespace isomap
