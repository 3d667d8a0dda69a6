// The text form of programs: printed for people, parsed back to an equal program.
//
//   program seed=7 version=2006002 {
//     op_version relu = 1
//     block 0 {
//       var "x" float32 [-1, 784] lod=1 stop_gradient check_feed
//       param "w" float32 [784, 10] persistable
//       var "y" float32 [-1, 10] {axis = 1}
//       {Out: ["y"]} = mul(X: ["x"], Y: ["w"]) {scale = 0.5, x_num_col_dims = 1}  # net.cc:12
//     }
//     block 1 parent=0 forward=0 {
//     }
//   }
//
// - A variable: `var` or `param` (a parameter), its name, its kind if it isn't lod_tensor, dtype,
//   dims, then those of lod=N, persistable, stop_gradient, check_feed, not_trainable and
//   learning_rate_factor=F that apply, then its attributes.
// - An op: outputs, type, inputs, `target` if it is marked so, attributes.
// - A value of an attribute: 1 is an int, 0.5 a float (so are inf, -inf, nan and, with its bits,
//   nan(0x7fc00001)), "text" a string, true a bool; every other type is named: `long 1`,
//   `double 0.5`, `block 1`, `var "x"`, `ints [1, 2]`, `floats [0.5]`, `strings ["a"]`,
//   `bools [true]`, `blocks [1]`, `longs [1]`, `doubles [0.5]`, `vars ["x"]`. Naming it is allowed
//   for the first four too. Floating point is printed as the shortest text that reads back as the
//   same bits.
// - Strings escape with \", \\, \n, \t, \r and \xHH (any byte). A name of letters, digits and
//   `_.@/-` that starts with a letter or `_` needs no quotes.
// - `#` starts a comment that ends with the line. Line breaks mean nothing else.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "framework/ir/program.h"

namespace skiff {

// Without a line break.
std::string PrintAttribute(const Attribute& attribute);
std::string PrintOp(const Op& op);
std::string PrintProgram(const Program& program);

// The program of a text; ops get their ids in order. Error (kInvalidArgument) that starts with line
// and column for text that isn't a program.
std::unique_ptr<Program> ParseProgramText(std::string_view text);

// Graphviz: a box an op, an ellipse a variable with its shape, parameters coloured; sub-blocks are
// clusters.
std::string PrintDot(const Program& program);

}  // namespace skiff
