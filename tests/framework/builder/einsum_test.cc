#include "framework/builder/einsum.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/builder/data.h"
#include "framework/builder/program_guard.h"
#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::HasSubstr;

struct Operand {
  std::vector<int64_t> dims;
  std::string letters;  // of its axes
};

// Element i of operand k.
float ValueOf(size_t k, int64_t i) { return static_cast<float>((7 * i + 3 * int64_t(k)) % 11 - 5); }

// Visits all indices of letters with these extents.
template <typename Visit>
void ForAllIndices(const std::map<char, int64_t>& extents, const Visit& visit) {
  std::map<char, int64_t> index;
  for (const auto& [letter, extent] : extents) index[letter] = 0;
  for (bool goes_on = true; goes_on;) {
    visit(index);
    goes_on = false;
    for (auto& [letter, at] : index) {
      if (++at < extents.at(letter)) {
        goes_on = true;
        break;
      }
      at = 0;
    }
  }
}

int64_t PlaceOf(const std::string& letters, const std::vector<int64_t>& dims,
                std::map<char, int64_t> index) {
  int64_t place = 0;
  for (size_t i = 0; i < letters.size(); ++i) {
    place = place * dims[i] + (dims[i] == 1 ? 0 : index.at(letters[i]));
  }
  return place;
}

// The sums of products by their definition, one index after the other.
std::vector<float> Expected(const std::vector<Operand>& operands, const Operand& result) {
  std::map<char, int64_t> extents;
  for (const Operand& operand : operands) {
    for (size_t i = 0; i < operand.letters.size(); ++i) {
      int64_t& extent = extents[operand.letters[i]];
      extent = std::max(extent, operand.dims[i]);
    }
  }
  std::vector<float> sums(static_cast<size_t>(Shape(result.dims).element_count()), 0.0f);
  ForAllIndices(extents, [&](const std::map<char, int64_t>& index) {
    float product = 1;
    for (size_t k = 0; k < operands.size(); ++k) {
      product *= ValueOf(k, PlaceOf(operands[k].letters, operands[k].dims, index));
    }
    sums[static_cast<size_t>(PlaceOf(result.letters, result.dims, index))] += product;
  });
  return sums;
}

FeedList FeedsOf(const std::vector<Operand>& operands) {
  FeedList feeds;
  for (size_t k = 0; k < operands.size(); ++k) {
    const Shape shape(operands[k].dims);
    std::vector<float> values;
    for (int64_t i = 0; i < shape.element_count(); ++i) values.push_back(ValueOf(k, i));
    feeds.emplace_back("x" + std::to_string(k), Tensor::FromValues<float>(shape, values));
  }
  return feeds;
}

// Runs the equation on operands of which the program knows these dims.
Tensor ResultOfDeclared(const std::string& equation, const std::vector<Operand>& operands,
                        const std::vector<std::vector<int64_t>>& declared) {
  Program main, startup;
  ProgramGuard guard(&main, &startup);
  std::vector<Variable> inputs;
  for (size_t k = 0; k < operands.size(); ++k) {
    inputs.push_back(layers::Data("x" + std::to_string(k), declared[k]));
  }
  const Variable out = layers::Einsum(equation, inputs);
  Executor executor;
  return executor.Compile(main).Run(FeedsOf(operands), {out})[0];
}

// Runs the equation with the first operand's first dim unknown to the program, if `hides` it.
Tensor ResultOf(const std::string& equation, const std::vector<Operand>& operands, bool hides) {
  std::vector<std::vector<int64_t>> declared;
  for (const Operand& operand : operands) declared.push_back(operand.dims);
  if (hides) declared[0][0] = -1;
  return ResultOfDeclared(equation, operands, declared);
}

void Check(const std::string& equation, const std::vector<Operand>& operands,
           const Operand& result) {
  SCOPED_TRACE(equation);
  for (const bool hides : {false, true}) {
    if (hides && operands[0].dims.empty()) continue;
    const Tensor out = ResultOf(equation, operands, hides);
    EXPECT_EQ(out.shape(), Shape(result.dims));
    EXPECT_EQ(out.ToVector<float>(), Expected(operands, result));
  }
}

TEST(Einsum, MultipliesMatricesAndVectors) {
  Check("ij,jk->ik", {{{2, 3}, "ij"}, {{3, 4}, "jk"}}, {{2, 4}, "ik"});
  Check("bij,bjk->bik", {{{5, 2, 3}, "bij"}, {{5, 3, 4}, "bjk"}}, {{5, 2, 4}, "bik"});
  Check("i,i->", {{{3}, "i"}, {{3}, "i"}}, {{}, ""});
  Check("i,j->ij", {{{3}, "i"}, {{4}, "j"}}, {{3, 4}, "ij"});
  Check("bhqd,bkhd->bhqk", {{{2, 3, 4, 5}, "bhqd"}, {{2, 6, 3, 5}, "bkhd"}},
        {{2, 3, 4, 6}, "bhqk"});
}

TEST(Einsum, SumsWhatTheResultLacks) {
  Check("ijk->ki", {{{2, 3, 4}, "ijk"}}, {{4, 2}, "ki"});
  Check("ij->", {{{2, 3}, "ij"}}, {{}, ""});
  Check("ij,kl->i", {{{2, 3}, "ij"}, {{2, 4}, "kl"}}, {{2}, "i"});
  Check("ijk,jlk->il", {{{2, 3, 4}, "ijk"}, {{3, 5, 4}, "jlk"}}, {{2, 5}, "il"});
}

TEST(Einsum, TakesAnyNumberOfOperands) {
  Check("ij,jk,kl->il", {{{2, 3}, "ij"}, {{3, 4}, "jk"}, {{4, 5}, "kl"}}, {{2, 5}, "il"});
  Check("i,ij,j->", {{{2}, "i"}, {{2, 3}, "ij"}, {{3}, "j"}}, {{}, ""});
}

TEST(Einsum, AnEllipsisStandsForLeadingAxes) {
  Check("...ij,...jk->...ik", {{{5, 2, 3}, "bij"}, {{5, 3, 4}, "bjk"}}, {{5, 2, 4}, "bik"});
  Check("...ij,jk->...ik", {{{2, 2, 2, 3}, "abij"}, {{3, 4}, "jk"}}, {{2, 2, 2, 4}, "abik"});
  // Extents of 1 are broadcast.
  Check("...i,...i->...", {{{4, 3, 2}, "abi"}, {{1, 2}, "bi"}}, {{4, 3}, "ab"});
}

TEST(Einsum, AnUnknownExtentBesideAnExtentOfOne) {
  const auto check = [](const std::string& equation, const std::vector<Operand>& operands,
                        const std::vector<std::vector<int64_t>>& declared, const Operand& result) {
    SCOPED_TRACE(equation);
    const Tensor out = ResultOfDeclared(equation, operands, declared);
    EXPECT_EQ(out.shape(), Shape(result.dims));
    EXPECT_EQ(out.ToVector<float>(), Expected(operands, result));
  };
  check("ai,ajk->aijk", {{{1, 4}, "ai"}, {{2, 3, 5}, "ajk"}}, {{1, -1}, {-1, 3, 5}},
        {{2, 4, 3, 5}, "aijk"});
  check("ab,ab->ab", {{{1, 3}, "ab"}, {{2, 3}, "ab"}}, {{1, 3}, {-1, 3}}, {{2, 3}, "ab"});
  check("ab,ab->", {{{1, 3}, "ab"}, {{2, 3}, "ab"}}, {{1, 3}, {-1, 3}}, {{}, ""});
  check("ab,ab->ab", {{{2, 3}, "ab"}, {{1, 3}, "ab"}}, {{-1, 3}, {1, 3}}, {{2, 3}, "ab"});
  // With products of matrices.
  check("aijl,ajkl->aijk", {{{1, 4, 3, 2}, "aijl"}, {{2, 3, 5, 2}, "ajkl"}},
        {{1, -1, 3, 2}, {-1, 3, 5, 2}}, {{2, 4, 3, 5}, "aijk"});
  check("abijl,abjk->abilk", {{{2, 2, 4, 3, 2}, "abijl"}, {{2, 2, 3, 5}, "abjk"}},
        {{-1, -1, -1, 3, 2}, {-1, -1, 3, 5}}, {{2, 2, 4, 2, 5}, "abilk"});
  check("abl,ablk->abk", {{{2, 3, 4}, "abl"}, {{2, 3, 4, 5}, "ablk"}},
        {{-1, -1, -1}, {-1, -1, -1, -1}}, {{2, 3, 5}, "abk"});
  // What only one has of several unknown extents.
  check("ai,bj->aibj", {{{2, 3}, "ai"}, {{4, 5}, "bj"}}, {{-1, -1}, {-1, -1}},
        {{2, 3, 4, 5}, "aibj"});
}

TEST(Einsum, AProductWithoutSumsIsElementwise) {
  Program main, startup;
  ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {2, 0}, DType::kInt64);
  const Variable y = layers::Data("y", {3}, DType::kInt64);
  const Variable out = layers::Einsum("ij,k->kij", {x, y});
  EXPECT_EQ(out.dims(), (std::vector<int64_t>{3, 2, 0}));
  const auto& ops = main.root()->ops();
  EXPECT_EQ(ops.back()->type, "elementwise_mul");
  EXPECT_THAT(InvalidArgumentText([&] {
                layers::Einsum("i,i->", {y, y});
              }),
              HasSubstr("expected floats where the equation sums"));
  EXPECT_THAT(InvalidArgumentText([&] { layers::Einsum("i->", {y}); }),
              HasSubstr("expected floats where the equation sums"));
  Executor executor;
  const Variable square = layers::Einsum("i,i->i", {y, y});
  const auto found = executor.Compile(main).Run(
      {{"x", Tensor({2, 0}, DType::kInt64)}, {"y", Tensor::FromValues<int64_t>({3}, {2, -3, 4})}},
      {out, square});
  EXPECT_EQ(found[0].shape(), (Shape{3, 2, 0}));
  EXPECT_EQ(found[1].ToVector<int64_t>(), (std::vector<int64_t>{4, 9, 16}));
}

TEST(Einsum, ALetterTwiceTakesTheDiagonal) {
  Program main, startup;
  ProgramGuard guard(&main, &startup);
  const Variable x = layers::Data("x", {2, 3, 3});
  const Variable diagonal = layers::Einsum("bii->bi", {x});
  const Variable trace = layers::Einsum("bii->b", {x});
  Executor executor;
  std::vector<float> values;
  for (int i = 0; i < 18; ++i) values.push_back(static_cast<float>(i));
  const auto out = executor.Compile(main).Run({{"x", Tensor::FromValues<float>({2, 3, 3}, values)}},
                                              {diagonal, trace});
  EXPECT_EQ(out[0].ToVector<float>(), (std::vector<float>{0, 4, 8, 9, 13, 17}));
  EXPECT_EQ(out[1].ToVector<float>(), (std::vector<float>{12, 39}));
}

TEST(Einsum, WithoutAnArrowTheLettersThatAreThereOnceRemain) {
  Check("kj,ji", {{{2, 3}, "kj"}, {{3, 4}, "ji"}}, {{4, 2}, "ik"});
  Check("b i j , b j k", {{{5, 2, 3}, "bij"}, {{5, 3, 4}, "bjk"}}, {{2, 4}, "ik"});
}

TEST(Einsum, RefusesEquationsThatDoNotFit) {
  const auto message = [](const std::string& equation, const std::vector<Operand>& operands) {
    return InvalidArgumentText([&] { ResultOf(equation, operands, false); });
  };
  const std::vector<Operand> pair = {{{2, 3}, "ij"}, {{3, 4}, "jk"}};
  EXPECT_THAT(message("ij->i", pair), HasSubstr("1 terms for 2 operands"));
  EXPECT_THAT(message("ijk,jk->i", pair),
              HasSubstr("the term \"ijk\" doesn't fit operand 0 of shape [2, 3]"));
  EXPECT_THAT(message("ij,ik->j", pair), HasSubstr("extents 2 and 3"));
  EXPECT_THAT(message("ij,jk->iz", pair), HasSubstr("the result \"iz\""));
  EXPECT_THAT(message("ij,jk->ii", pair), HasSubstr("the result \"ii\""));
  EXPECT_THAT(message("i1,jk->i", pair), HasSubstr("the term \"i1\""));
  EXPECT_THAT(message("ii,jk->i", pair), HasSubstr("the diagonal of axes 0 and 1"));
}

}  // namespace
}  // namespace skiff
