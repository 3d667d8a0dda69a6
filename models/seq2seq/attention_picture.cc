#include "models/seq2seq/attention_picture.h"

#include <algorithm>
#include <vector>

#include "framework/base/number_text.h"
#include "framework/base/str_cat.h"
#include "framework/text/unicode.h"
#include "framework/training/svg.h"

namespace skiff::models {
namespace {

constexpr double kCell = 22;
constexpr double kMargin = 12;
constexpr double kGap = 6;  // between a label and the cells
constexpr double kFontSize = 13;
constexpr double kTitleHeight = 24;

std::string Label(const std::string& token) {
  const std::u32string characters = text::DecodeUtf8(token);
  return std::ranges::all_of(characters, text::IsWhiteSpace) ? "␣" : token;
}

// An upper bound for usual fonts: ideographs are squares, Latin letters narrower.
double WidthOf(const std::string& text) {
  double width = 0;
  for (const char32_t character : text::DecodeUtf8(text)) {
    width += character < 0x1100 ? 0.72 * kFontSize : 1.05 * kFontSize;
  }
  return width;
}

double WidestOf(const std::vector<std::string>& labels) {
  double widest = 0;
  for (const std::string& label : labels) widest = std::max(widest, WidthOf(label));
  return widest;
}

std::vector<std::string> LabelsOf(const std::vector<std::string>& tokens) {
  std::vector<std::string> labels;
  for (const std::string& token : tokens) labels.push_back(Label(token));
  return labels;
}

// The table of one translation.
class Table {
 public:
  explicit Table(const Translation& translation)
      : translation_(translation),
        columns_(LabelsOf(translation.source_tokens)),
        rows_(LabelsOf(translation.target_tokens)),
        left_(kMargin + WidestOf(rows_) + kGap),
        // Words stand on end above their columns, single characters upright.
        labels_turn_(std::ranges::any_of(
            columns_, [](const std::string& label) { return text::CharacterCount(label) > 1; })),
        top_(kTitleHeight + (labels_turn_ ? WidestOf(columns_) : kFontSize) + kGap) {}

  double width() const {
    return std::max(left_ + kCell * static_cast<double>(columns_.size()),
                    kMargin + WidthOf(translation_.text)) +
           kMargin;
  }
  double height() const { return top_ + kCell * static_cast<double>(rows_.size()) + kMargin; }

  // Returns the table with its upper edge at y.
  std::string Draw(double y) const {
    std::string svg = StrCat("<g transform=\"translate(0 ", SvgNumber(y), ")\">\n",
                             Text(kMargin, 16, "font-weight=\"bold\"", translation_.text));
    for (size_t i = 0; i < columns_.size(); ++i) {
      const double x = Center(left_, i);
      svg += labels_turn_ ? Text(0, 0,
                                 StrCat("transform=\"translate(", SvgNumber(x + kFontSize / 3), " ",
                                        SvgNumber(top_ - kGap), ") rotate(-90)\""),
                                 columns_[i])
                          : Text(x, top_ - kGap, "text-anchor=\"middle\"", columns_[i]);
    }
    for (size_t t = 0; t < rows_.size(); ++t) {
      svg += Text(left_ - kGap, Center(top_, t) + kFontSize / 3, "text-anchor=\"end\"", rows_[t]);
    }
    svg += "<g fill=\"#1f4e8c\" stroke=\"#ddd\">\n";
    for (size_t t = 0; t < rows_.size(); ++t) {
      for (size_t i = 0; i < columns_.size(); ++i) svg += Cell(t, i);
    }
    return svg + "</g>\n</g>\n";
  }

 private:
  static double Center(double start, size_t index) {
    return start + kCell * (static_cast<double>(index) + 0.5);
  }

  static std::string Text(double x, double y, const std::string& attributes,
                          const std::string& text) {
    return StrCat("<text x=\"", SvgNumber(x), "\" y=\"", SvgNumber(y), "\" ", attributes, ">",
                  SvgText(text), "</text>\n");
  }

  std::string Cell(size_t row, size_t column) const {
    const auto weight = static_cast<double>(translation_.attention[row][column]);
    // Over a cell, a viewer shows its title.
    return StrCat("<rect x=\"", SvgNumber(left_ + kCell * static_cast<double>(column)), "\" y=\"",
                  SvgNumber(top_ + kCell * static_cast<double>(row)), "\" width=\"",
                  SvgNumber(kCell), "\" height=\"", SvgNumber(kCell), "\" fill-opacity=\"",
                  FormatFixed(weight, 3), "\"><title>", SvgText(rows_[row]), " from ",
                  SvgText(columns_[column]), ": ", FormatFixed(100 * weight, 1),
                  " %</title></rect>\n");
  }

  const Translation& translation_;
  std::vector<std::string> columns_;
  std::vector<std::string> rows_;
  double left_;
  bool labels_turn_;
  double top_;
};

}  // namespace

std::string DrawAttention(std::span<const Translation> translations) {
  std::string tables;
  double width = 1;
  double height = 0;
  for (const Translation& translation : translations) {
    if (translation.source_tokens.empty()) continue;
    const Table table(translation);
    tables += table.Draw(height);
    width = std::max(width, table.width());
    height += table.height();
  }
  return StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", SvgNumber(width),
                "\" height=\"", SvgNumber(height), "\" viewBox=\"0 0 ", SvgNumber(width), " ",
                SvgNumber(height), "\" font-family=\"sans-serif\" font-size=\"",
                SvgNumber(kFontSize), "\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
                tables, "</svg>\n");
}

}  // namespace skiff::models
