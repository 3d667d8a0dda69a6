#include "framework/op/einsum_equation.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <set>

#include "framework/base/error.h"

namespace skiff {
namespace {

constexpr std::string_view kEllipsis = "...";

bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// Returns the result of an equation without "->".
std::string ImpliedResult(const std::string& terms) {
  std::string result(terms.find('.') == std::string::npos ? "" : kEllipsis);
  for (const char letter : std::set<char>(terms.begin(), terms.end())) {
    if (IsLetter(letter) && std::ranges::count(terms, letter) == 1) result += letter;
  }
  return result;
}

void CheckTerm(const std::string& term) {
  std::string letters = term;
  const size_t dots = letters.find(kEllipsis);
  if (dots != std::string::npos) letters.erase(dots, kEllipsis.size());
  SKIFF_ENFORCE(std::ranges::all_of(letters, IsLetter), kInvalidArgument,
                "the equation has the term \"", term, "\", expected letters and \"...\"");
}

std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> terms(1);
  for (const char c : text) {
    if (c == ',') {
      terms.emplace_back();
    } else {
      terms.back() += c;
    }
  }
  return terms;
}

// Replaces "..." by the digits of so many axes.
std::string WithoutEllipsis(std::string term, size_t axes) {
  const size_t dots = term.find(kEllipsis);
  if (dots == std::string::npos) return term;
  std::string digits;
  for (size_t i = axes; i > 0; --i) digits += static_cast<char>('0' + i);
  return term.replace(dots, kEllipsis.size(), digits);
}

// Returns how many axes the ellipsis of the term stands for. Throws Error if the term doesn't fit.
size_t HiddenAxes(const std::string& term, size_t operand, const Shape& shape) {
  const bool has_ellipsis = term.find(kEllipsis) != std::string::npos;
  const size_t letters = term.size() - (has_ellipsis ? kEllipsis.size() : 0);
  const auto rank = static_cast<size_t>(shape.rank());
  SKIFF_ENFORCE(has_ellipsis ? letters <= rank : letters == rank, kInvalidArgument, "the term \"",
                term, "\" doesn't fit operand ", operand, " of shape ", shape);
  return rank - letters;
}

void CheckResult(const EinsumTerms& terms, const std::string& result) {
  for (const char letter : terms.result) {
    const bool is_there = std::ranges::any_of(terms.operands, [&](const std::string& operand) {
      return operand.find(letter) != std::string::npos;
    });
    SKIFF_ENFORCE(is_there && std::ranges::count(terms.result, letter) == 1, kInvalidArgument,
                  "the result \"", result, "\" has a letter twice, or one that no operand has");
  }
}

}  // namespace

EinsumTerms ParseEinsum(std::string_view equation, std::span<const Shape> operands) {
  std::string text(equation);
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  const std::string result =
      arrow == std::string::npos ? ImpliedResult(text) : text.substr(arrow + 2);
  text.resize(std::min(arrow, text.size()));
  EinsumTerms terms = {SplitAtCommas(text), {}};
  for (const std::string& term : terms.operands) CheckTerm(term);
  CheckTerm(result);
  SKIFF_ENFORCE(terms.operands.size() == operands.size(), kInvalidArgument, "the equation has ",
                terms.operands.size(), " terms for ", operands.size(), " operands");
  size_t most_hidden = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    std::string& term = terms.operands[i];
    const size_t hidden = HiddenAxes(term, i, operands[i]);
    most_hidden = std::max(most_hidden, hidden);
    term = WithoutEllipsis(term, hidden);
  }
  terms.result = WithoutEllipsis(result, most_hidden);
  CheckResult(terms, result);
  return terms;
}

}  // namespace skiff
