#include <algorithm>
#include <map>
#include <tuple>

#include "tests/harness/op_case.h"

namespace skiff::harness {
namespace {

// An equation whose terms are spelled out: "..." is letters there, too.
struct EinsumTermsOfCase {
  std::vector<std::string> operands;
  std::string result;
};

int64_t PlaceOfIndex(const std::string& letters, const Shape& shape,
                     const std::map<char, int64_t>& index) {
  int64_t place = 0;
  for (int i = 0; i < shape.rank(); ++i) {
    const int64_t at = shape[i] == 1 ? 0 : index.at(letters[static_cast<size_t>(i)]);
    place = place * shape[i] + at;
  }
  return place;
}

// The sums of products, one index of all letters after the other.
Arrays EinsumReference(const Arrays& inputs, const EinsumTermsOfCase& terms) {
  const std::vector<Array>& operands = inputs.at("Operands");
  std::map<char, int64_t> extents;
  for (size_t k = 0; k < operands.size(); ++k) {
    for (int i = 0; i < operands[k].shape.rank(); ++i) {
      int64_t& extent = extents.emplace(terms.operands[k][static_cast<size_t>(i)], 1).first->second;
      if (operands[k].shape[i] != 1) extent = operands[k].shape[i];
    }
  }
  Shape out;
  for (const char letter : terms.result) out.Append(extents.at(letter));
  std::vector<double> sums(static_cast<size_t>(out.element_count()), 0.0);
  std::map<char, int64_t> index;
  int64_t count = 1;
  for (const auto& [letter, extent] : extents) count *= extent;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i;
    for (const auto& [letter, extent] : extents) {
      index[letter] = rest % extent;
      rest /= extent;
    }
    double product = 1;
    for (size_t k = 0; k < operands.size(); ++k) {
      product *= operands[k].values[static_cast<size_t>(
          PlaceOfIndex(terms.operands[k], operands[k].shape, index))];
    }
    sums[static_cast<size_t>(PlaceOfIndex(terms.result, out, index))] += product;
  }
  return {{"Out", {Values(out, sums)}}};
}

OpCase EinsumCase(const std::string& name, const std::string& equation,
                  const std::vector<Shape>& shapes, const EinsumTermsOfCase& terms) {
  OpCase result{.name = name,
                .type = "einsum",
                .attrs = {{"equation", equation}},
                .reference = [=](const Arrays& inputs) { return EinsumReference(inputs, terms); },
                .outputs = {{"Out", 1},
                            {"InnerCache", static_cast<int>(shapes.size())},
                            {"XShape", static_cast<int>(shapes.size())}},
                .gradients = {"Operands"}};
  for (size_t i = 0; i < shapes.size(); ++i) {
    result.inputs["Operands"].push_back(Uniform(shapes[i], i + 1));
  }
  return result;
}

// Returns the terms of an equation without "..." and spaces, with "->".
EinsumTermsOfCase TermsOfEquation(const std::string& equation) {
  const size_t arrow = equation.find("->");
  EinsumTermsOfCase terms = {{""}, equation.substr(arrow + 2)};
  for (const char c : equation.substr(0, arrow)) {
    if (c == ',') {
      terms.operands.emplace_back();
    } else {
      terms.operands.back() += c;
    }
  }
  return terms;
}

}  // namespace

void AddEinsumCases(CaseList& cases) {
  const auto add = [&](const std::string& name, const std::string& equation,
                       const std::vector<Shape>& shapes) -> OpCase& {
    return cases.emplace_back(EinsumCase(name, equation, shapes, TermsOfEquation(equation)));
  };
  const auto spelled_out = [&](const std::string& name, const std::string& equation,
                               const std::vector<Shape>& shapes, const std::string& letters) {
    cases.push_back(EinsumCase(name, equation, shapes, TermsOfEquation(letters)));
  };
  // One operand.
  add("permutes", "abc->cab", {{2, 3, 4}});
  add("sums_rows", "ab->b", {{5, 3}});
  add("sums_all", "abc->", {{2, 3, 4}}).accepted_wrong_inputs = {
      {"InnerCache", "other dims", "nothing else tells the extents that the equation sums over"},
      {"x_shape", "other dims", "it isn't read: files of PaddlePaddle have the operand's dims"},
      {"x_shape", "other rank", "it isn't read"},
      {"x_shape", "other dtype", "it isn't read"}};
  add("sums_and_permutes", "abcd->da", {{2, 3, 4, 5}});
  add("sums_many", "ab->a", {{3, 40000}}).gradients.clear();
  add("diagonal", "aab->ba", {{3, 3, 2}});
  add("diagonal_of_three", "aaa->a", {{4, 4, 4}});
  add("trace", "aa->", {{5, 5}});
  add("diagonal_apart", "abca->cb", {{3, 2, 4, 3}});
  // Two operands.
  add("matrices", "ij,jk->ik", {{5, 7}, {7, 3}});
  add("matrices_transposed", "ji,kj->ki", {{7, 5}, {3, 7}});
  add("batch", "bij,bjk->bik", {{2, 4, 5}, {2, 5, 6}});
  add("heads", "bqhd,bkhd->bhqk", {{2, 3, 2, 4}, {2, 5, 2, 4}});
  add("heads_joined", "bhqk,bkhd->bqhd", {{2, 2, 3, 5}, {2, 5, 2, 4}});
  add("several_sums", "iabj,bjka->ik", {{2, 3, 4, 2}, {4, 2, 5, 3}});
  add("several_kept", "aibj,jkl->bkila", {{2, 3, 4, 2}, {2, 3, 2}});
  add("vectors", "i,i->", {{7}, {7}});
  add("matrix_times_vector", "ij,j->i", {{4, 3}, {3}});
  add("outer", "i,j->ji", {{3}, {4}});
  add("elementwise", "ij,ji->ij", {{3, 4}, {4, 3}});
  add("rows_scaled", "ij,i->ij", {{3, 5}, {3}});
  add("columns_scaled", "j,ij->ij", {{5}, {3, 5}});
  add("a_scalar", ",ij->ji", {Shape(), {3, 4}});
  add("sums_of_one_operand", "ija,kb->ik", {{3, 2, 4}, {5, 2}});
  add("inner_products", "bi,bi->b", {{4, 6}, {4, 6}});
  add("diagonal_times_matrix", "iij,jk->ik", {{3, 3, 4}, {4, 2}});
  add("trace_of_a_product", "ij,ji->", {{3, 4}, {4, 3}});
  add("one_repeats", "bij,bjk->bik", {{1, 3, 4}, {2, 4, 5}});
  add("one_is_summed", "bij,bjk->ik", {{1, 3, 4}, {2, 4, 5}});
  add("several_blocks", "aij,ajk->aki", {{2, 35, 68}, {2, 68, 66}});
  // "...", spaces, and no "->".
  spelled_out("ellipsis", "...ij,...jk->...ik", {{2, 3, 4}, {2, 4, 2}}, "aij,ajk->aik");
  spelled_out("ellipsis_broadcasts", "...ij,...j->...i", {{2, 3, 4, 5}, {3, 5}}, "abij,bj->abi");
  spelled_out("ellipsis_of_one", "i...,...j->...ij", {{3, 2, 1}, {4, 5}}, "iab,bj->abij");
  spelled_out("ellipsis_is_summed", "...ij->ij", {{2, 3, 4}}, "aij->ij");
  spelled_out("ellipsis_of_nothing", "i...,j->...ij", {{3}, {2}}, "i,j->ij");
  spelled_out("implied", "kj,ji", {{2, 3}, {3, 4}}, "kj,ji->ik");
  spelled_out("implied_with_ellipsis", " b ... j , b j k ", {{3, 2, 4}, {3, 4, 2}}, "baj,bjk->ak");
  spelled_out("capitals", "aA,Ab->Ab", {{2, 3}, {3, 4}}, "aA,Ab->Ab");
  // More operands.
  add("chain", "ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}});
  add("bilinear", "bi,oij,bj->bo", {{3, 4}, {2, 4, 5}, {3, 5}});
  add("four", "ab,cb,ad,e->dce", {{2, 3}, {4, 3}, {2, 2}, {3}});
  add("three_elementwise", "i,ij,j->ij", {{3}, {3, 4}, {4}});
  // Nothing to sum, and one element.
  add("nothing_to_sum", "ij,jk->ik", {{2, 0}, {0, 3}});
  add("an_empty_result", "ij,jk->ik", {{0, 2}, {2, 3}});
  add("an_empty_sum", "ij->i", {{2, 0}});
  add("one_element", "ij,jk->ik", {{1, 1}, {1, 1}});
  add("scalars", ",->", {Shape(), Shape()});
  // Without what PaddlePaddle saves for its gradient.
  add("without_cache", "ij,jk->ik", {{3, 4}, {4, 2}}).outputs.resize(1);
  for (const auto& [name, equation, shapes] :
       {std::tuple<std::string, std::string, std::vector<Shape>>{
            "heads_8x128x12x64", "bqhd,bkhd->bhqk", {{8, 128, 12, 64}, {8, 128, 12, 64}}},
        {"matrices_512", "ij,jk->ik", {{512, 512}, {512, 512}}},
        {"permutes_512x64x64", "abc->cab", {{512, 64, 64}}}}) {
    add(name, equation, shapes).benchmark_only = true;
  }
}

}  // namespace skiff::harness
