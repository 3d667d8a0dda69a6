// The names of gradients, of variables and of slots.
#pragma once

#include <string>
#include <string_view>

namespace skiff {

// Returns `name` + "@GRAD".
std::string GradName(std::string_view name);
// Returns what `gradient`, the name of a variable or of a slot, says that it is the gradient of:
// what precedes the last "@GRAD"; empty if there is none. So x@GRAD is of x, as are x@GRAD_<n> and
// x@GRAD@RENAME@<k>, which append_backward makes, too; x@GRAD@GRAD is of x@GRAD. Whether there is
// such a variable is another question: a name is a claim of a file. The result refers to
// `gradient`.
std::string_view ForwardName(std::string_view gradient);

}  // namespace skiff
