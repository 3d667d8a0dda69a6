// A summary of a model: layers with outputs, parameters and FLOP.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/ir/api/program.h"
#include "framework/op/api/default_registry.h"
#include "framework/tensor/api/shape.h"

namespace skiff {

// A layer: consecutive ops of the root block whose outputs have names of one layer.
struct LayerSummary {
  std::string name = {};              // "fc_0", after the name scope if there is one
  std::vector<std::string> ops = {};  // their types, in order
  // Of the last one's first output in the order of its definition, running statistics aside; -1:
  // unknown until a run.
  Shape output = {};
  // Elements of the parameters that the layer reads, in sub-blocks, too, and no layer before it
  // does; and of the trained parameters among them.
  int64_t parameters = 0;
  int64_t trainable_parameters = 0;
  // Of the products of matrices and convolutions (OpDef::flop: a multiply-add counts 2) in one run.
  // 0 without any; unset if their shapes aren't known.
  std::optional<double> flop = 0.0;
};

struct ModelSummary {
  std::vector<LayerSummary> layers = {};
  int64_t parameters = 0;
  int64_t trainable_parameters = 0;
  int64_t parameter_bytes = 0;
  std::optional<double> flop = 0.0;  // unset if a layer's is unset

  // Returns a table with a line for each layer, and the sums.
  std::string Text() const;
};

struct SummaryOptions {
  // Takes the place of the first dim of each feed that has none declared. 0: it stays unknown.
  int64_t batch_size = 0;
  // Shapes of feeds, by name, in place of those declared.
  std::map<std::string, Shape> feeds = {};
};

// Summarizes the forward ops of the program, so a training program like its clone for evaluation.
// Parameters are the variables marked as such that no forward op writes: running statistics are
// none, nor are states of an optimizer. FLOP inside of sub-blocks (loops) aren't counted. Throws an
// Error: kInvalidArgument if batch_size is negative; kNotFound for a shape under a name that is no
// feed; and, with a batch size or shapes of feeds, the Errors of the ops' shape rules.
//
//   std::cout << Summarize(main, {.batch_size = 1}).Text();
ModelSummary Summarize(const Program& program, const SummaryOptions& options = {},
                       const OpRegistry& registry = DefaultOpRegistry());

}  // namespace skiff
