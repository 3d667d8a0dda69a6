#include "tests/harness/forged_programs.h"

#include "framework/base/str_cat.h"

namespace skiff::harness {

std::string ShrinkGrad(const std::string& shape) {
  return StrCat(R"(program { block 0 {
    var x float32 [1, 2]
    var g float32 )",
                shape, R"(
    var xg float32 [1, 2]
    {Out: [x]} = fill_constant() {shape = longs [1, 2], dtype = 5, value = 1.0}
    {Out: [g]} = fill_constant() {shape = longs )",
                shape, R"(, dtype = 5, value = 7.0}
    {"X@GRAD": [xg]} = shrink_rnn_memory_grad(X: [x], "Out@GRAD": [g])
  } })");
}

std::string JoinGrad(const std::string& shape) {
  return StrCat(R"(program { block 0 {
    var x float32 [3, 1]
    var i int64 [1]
    var a lod_tensor_array float32 [3, 1]
    var ag lod_tensor_array float32 [3, 1]
    var g float32 )",
                shape, R"(
    var r float32 [3, 1]
    {Out: [x]} = fill_constant() {shape = longs [3, 1], dtype = 5, value = 1.0}
    {Out: [g]} = fill_constant() {shape = longs )",
                shape, R"(, dtype = 5, value = 7.0}
    {Out: [i]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
    {Out: [a]} = write_to_array(X: [x], I: [i])
    {"X@GRAD": [ag]} = tensor_array_to_tensor_grad(X: [a], "Out@GRAD": [g]) {axis = 0, use_stack = true}
    {Out: [r]} = read_from_array(X: [ag], I: [i])
  } })");
}

std::string BlockGrad(const std::string& type, const std::string& shape,
                      const std::string& variable) {
  const bool is_while = type == "while";
  const std::string y = StrCat('"', variable, '"');
  const std::string gradient = StrCat('"', variable, "@GRAD\"");
  const std::string condition = is_while ? "Condition" : "Cond";
  const std::string captured = StrCat(is_while ? "X" : "Input", ": [", y, "]");
  const std::string inputs = StrCat(condition, ": [cond], ", captured);
  const std::string of_grad = is_while ? captured : inputs;
  const std::string scopes = is_while ? "StepScopes" : "Scope";
  const std::string attrs = is_while ? "" : "is_scalar_condition = true, ";
  return StrCat(R"(program { block 0 {
    var cond bool [1]
    var )",
                y, R"( float32 [2]
    var s step_scopes float32 []
    var yg float32 )",
                shape, R"(
    var ygo float32 [2]
    {Out: [cond]} = fill_constant() {shape = longs [1], dtype = 0, value = 0.0}
    {Out: [)",
                y, R"(]} = fill_constant() {shape = longs [2], dtype = 5, value = 2.0}
    {Out: [)",
                y, "], ", scopes, ": [s]} = ", type, is_while ? "" : "_block", "(", inputs, ") {",
                attrs, R"(sub_block = block 1}
    {Out: [yg]} = fill_constant() {shape = longs )",
                shape, R"(, dtype = 5, value = 7.0}
    {")",
                is_while ? "X" : "Input", R"(@GRAD": [ygo]} = )", type, is_while ? "" : "_block",
                "_grad(", of_grad, ", Out: [", y, R"(], "Out@GRAD": [yg], )", scopes, ": [s]) {",
                attrs, "sub_block = block 2, original_output_grad = strings [", gradient, R"(]}
  }
  block 1 parent=0 {
    {Out: [)",
                y, R"(]} = fill_constant() {shape = longs [2], dtype = 5, value = 3.0}
  }
  block 2 parent=0 forward=1 {
    var )",
                gradient, R"( float32 [2]
    {Out: [)",
                gradient, R"(]} = fill_constant() {shape = longs [2], dtype = 5, value = 5.0}
  } })");
}

std::string RecurrentGrad(const std::string& gradient) {
  return StrCat(R"(program { block 0 {
    var x float32 [3, 2]
    var o float32 [3, 2]
    var s step_scopes float32 []
    var og float32 [3, 2]
    var never float32 [3, 2]
    var few float32 [2, 2]
    var xg float32 [3, 2]
    {Out: [x]} = fill_constant() {shape = longs [3, 2], dtype = 5, value = 1.0}
    {Out: [og]} = fill_constant() {shape = longs [3, 2], dtype = 5, value = 7.0}
    {Out: [few]} = fill_constant() {shape = longs [2, 2], dtype = 5, value = 7.0}
    {outputs: [o], step_scopes: [s]} = recurrent(inputs: [x]) {sub_block = block 1}
    {"inputs@GRAD": [xg]} = recurrent_grad(inputs: [x], outputs: [o], "outputs@GRAD": [)",
                gradient,
                R"(], step_scopes: [s]) {sub_block = block 2}
  }
  block 1 parent=0 {
    var x float32 [2]
    var o float32 [2]
    {Out: [o]} = scale(X: [x]) {scale = 2.0}
  }
  block 2 parent=0 forward=1 {
    var "o@GRAD" float32 [2]
    var "x@GRAD" float32 [2]
    {Out: ["x@GRAD"]} = scale(X: ["o@GRAD"]) {scale = 2.0}
  } })");
}

std::string MadeRows(const std::string& rows, const std::string& chosen) {
  return StrCat(R"(program { block 0 {
    var x float32 )",
                rows, R"(
    var s float32 )",
                chosen, R"(
    var mask bool )",
                chosen, R"(
    var given float32 )",
                chosen, R"(
    var "x@GRAD" float32 [-1]
    var z float32 [-1]
    {Out: [x]} = fill_constant() {shape = longs )",
                rows, R"(, dtype = 5, value = 2.0}
    {Out: [s]} = fill_constant() {shape = longs )",
                chosen, R"(, dtype = 5, value = 7.0}
    {Out: [mask]} = cast(X: [given]) {in_dtype = 5, out_dtype = 0}
    {Y: ["x@GRAD"]} = masked_select(X: [s], Mask: [mask]) {op_role = 1}
    {Out: [z]} = scale(X: ["x@GRAD"]) {scale = 2.0}
  } })");
}

std::string WithStep(const std::string& ops) {
  return StrCat(R"(program { block 0 {
    var x float32 [-1, 2] lod=1
    var rt lod_rank_table int64 [-1, 3]
    var len int64 [1]
    var step int64 [1]
    var cond bool [1]
    var arr lod_tensor_array float32 [-1, 2]
    var outarr lod_tensor_array float32 [-1, 2]
    var out float32 [-1, 2] lod=1
    var scopes step_scopes float32 []
    {Out: [rt]} = lod_rank_table(X: [x]) {level = 0}
    {Out: [len]} = max_sequence_len(RankTable: [rt])
    {Out: [step]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
    {Out: [cond]} = less_than(X: [step], Y: [len])
    {Out: [arr]} = lod_tensor_to_array(X: [x], RankTable: [rt])
    {Out: [step, cond, outarr], StepScopes: [scopes]} = while(X: [arr, step, len], Condition: [cond]) {sub_block = block 1}
    {Out: [out]} = array_to_lod_tensor(X: [outarr], RankTable: [rt])
  }
  block 1 parent=0 {
    var xs float32 [-1, 2]
    var v float32 [2, 2]
    var w float32 [-1, 2]
    var vi int64 [2, 2]
    var m float32 [2]
    var n float32 [2]
    var o float32 [-1, 2]
    {Out: [xs]} = read_from_array(X: [arr], I: [step])
    )",
                ops, R"(
    {Out: [o]} = elementwise_sub(X: [xs], Y: [m]) {axis = -1}
    {Out: [outarr]} = write_to_array(X: [o], I: [step])
    {Out: [step]} = increment(X: [step]) {step = 1.0}
    {Out: [cond]} = less_than(X: [step], Y: [len])
  } })");
}

}  // namespace skiff::harness
