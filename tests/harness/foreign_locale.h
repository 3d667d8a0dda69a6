// Locales in which numbers look different: 1234567.5 is "1.234.567,5".
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <clocale>
#include <cstdlib>
#include <locale>
#include <string>

namespace skiff {

// While an object exists, the process has such a locale, as a program that uses Skiff may set one.
class ForeignLocale {
 public:
  enum Kind {
    kCpp,  // std::locale::global, which streams follow
    kC,    // setlocale, which printf and strtod follow
  };

  explicit ForeignLocale(Kind kind) : c_before_(std::setlocale(LC_NUMERIC, nullptr)) {
    if (kind == kCpp) {
      std::locale::global(std::locale(std::locale::classic(), new Numbers));
    } else {
      is_set_ = SetNumbersWithCommas();
    }
  }
  ~ForeignLocale() {
    std::locale::global(cpp_before_);
    std::setlocale(LC_NUMERIC, c_before_.c_str());
  }
  ForeignLocale(const ForeignLocale&) = delete;
  ForeignLocale& operator=(const ForeignLocale&) = delete;

  // Returns false if the machine has no such locale and no localedef to make one.
  bool is_set() const { return is_set_; }
  static const char* why_not() {
    return "there is no locale de_DE.UTF-8, and no localedef to make one";
  }

 private:
  struct Numbers : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };

  static bool SetNumbersWithCommas() {
    if (std::setlocale(LC_NUMERIC, "de_DE.UTF-8") != nullptr) return true;
    // Not installed: make a locale that only defines numbers, once for all tests of the program.
    static const bool is_made = MakeLocale(testing::TempDir() + "/locales");
    return is_made && std::setlocale(LC_NUMERIC, kMade) != nullptr;
  }

  static bool MakeLocale(const std::string& folder) {
    const std::string make =
        "mkdir -p '" + folder + "' && cd '" + folder +
        "' && printf 'LC_NUMERIC\\ndecimal_point \",\"\\nthousands_sep \".\"\\ngrouping 3;3\\n"
        "END LC_NUMERIC\\n' > numbers && localedef -c -i ./numbers -f UTF-8 ./" +
        kMade + " >/dev/null 2>&1; test -s " + kMade + "/LC_NUMERIC";
    return std::system(make.c_str()) == 0 && setenv("LOCPATH", folder.c_str(), 1) == 0;
  }

  static constexpr const char* kMade = "numbers.UTF-8";

  std::locale cpp_before_;
  std::string c_before_;
  bool is_set_ = true;
};

// A test that runs in each kind of foreign locale:
//   INSTANTIATE_TEST_SUITE_P(, InForeignLocale, ForeignLocales(), ForeignLocaleName);
class InForeignLocale : public testing::TestWithParam<ForeignLocale::Kind> {
 protected:
  void SetUp() override {
    if (!locale_.is_set()) GTEST_SKIP() << ForeignLocale::why_not();
  }

 private:
  const ForeignLocale locale_{GetParam()};
};

inline auto ForeignLocales() { return testing::Values(ForeignLocale::kCpp, ForeignLocale::kC); }
inline std::string ForeignLocaleName(const testing::TestParamInfo<ForeignLocale::Kind>& info) {
  return info.param == ForeignLocale::kCpp ? "Cpp" : "C";
}

}  // namespace skiff
