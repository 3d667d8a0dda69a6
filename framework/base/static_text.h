// Text that is never freed.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

namespace skiff {

// A string literal, or text of which the process keeps a copy for good: for the few names and
// documents of definitions. It is copied and destroyed without a call, so that the tables of
// definitions compile fast.
class StaticText : public std::string_view {
 public:
  constexpr StaticText() = default;
  // A constant array must be a literal, or live as long as the process.
  template <size_t kSize>
  constexpr StaticText(const char (&literal)[kSize]) : std::string_view(literal) {}
  // Keep a copy; equal texts share one. Thread-safe.
  template <size_t kSize>
  StaticText(char (&text)[kSize]) : StaticText(std::string_view(text)) {}
  // A template, so that a literal takes the first constructor. Throws Error for a null pointer.
  template <std::same_as<const char*> Pointer>
  StaticText(Pointer text) : StaticText(TextAt(text)) {}
  StaticText(const std::string& text) : StaticText(std::string_view(text)) {}
  explicit StaticText(std::string_view text);

  operator std::string() const { return std::string(data(), size()); }

 private:
  static std::string_view TextAt(const char* text);
};

}  // namespace skiff

// Algorithms compare a StaticText with a std::string, each of which converts to the other, as
// views.
template <template <class> class Qualified, template <class> class QualifiedToo>
struct std::basic_common_reference<skiff::StaticText, std::string, Qualified, QualifiedToo> {
  using type = std::string_view;
};
template <template <class> class Qualified, template <class> class QualifiedToo>
struct std::basic_common_reference<std::string, skiff::StaticText, Qualified, QualifiedToo> {
  using type = std::string_view;
};
