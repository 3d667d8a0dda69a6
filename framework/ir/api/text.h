// The text format of programs, printed for people. Parsing gives back an equal program.
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
// - A variable: `var`, or `param` for a parameter; its name; the kind, unless it is lod_tensor; its
//   dtype and dims; whichever apply of lod=N, persistable, stop_gradient, check_feed, not_trainable
//   and learning_rate_factor=F; its attributes.
// - An op: outputs, type, inputs, `target` if is_target is set, attributes.
// - An attribute value: 1 is an int; 0.5 is a float, and so are inf, -inf, nan and nan(0x7fc00001),
//   a NaN with its bits; "text" is a string; true is a bool. Values of all other types start with
//   the type: `long 1`, `double 0.5`, `block 1`, `var "x"`, `ints [1, 2]`, `floats [0.5]`, `strings
//   ["a"]`, `bools [true]`, `blocks [1]`, `longs [1]`, `doubles [0.5]`, `vars ["x"]`. The type is
//   optional for the first four. Floating-point values are printed as the shortest text that reads
//   back as the same bits.
// - Strings escape with \", \\, \n, \t, \r and \xHH (any byte). A name needs no quotes if it
//   consists of letters, digits and `_.@/-` and starts with a letter or `_`.
// - A comment starts with a `#` after a blank, or at the start of the text, and ends with the line.
//   Line breaks have no other meaning.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "framework/ir/api/program.h"

namespace skiff {

// Returns the text of a whole program, which ends with a line break.
std::string PrintProgram(const Program& program);

// Parses a program. Ops get ids in order. Throws Error (kInvalidArgument), starting with line and
// column, if the text is not a program.
std::unique_ptr<Program> ParseProgramText(std::string_view text);

// Returns a Graphviz graph: a box per op, an ellipse with the shape per variable, parameters in
// colour, and a cluster per sub-block.
std::string PrintDot(const Program& program);

}  // namespace skiff
