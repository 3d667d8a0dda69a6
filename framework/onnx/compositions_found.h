// Compositions of ops in imported programs for which Skiff has one op, or which the passes know in
// one form alone. ONNX had no such op when the file was written, or the exporter writes another
// form. Apart from rounding, a program computes the same afterwards, and so do its gradients.
#pragma once

#include <string>
#include <vector>

#include "framework/ir/program.h"
#include "framework/onnx/composition_graph.h"

namespace skiff {

// Replaces all compositions that the functions below find. The replaced ops stay in the program,
// for whoever fetches their variables; no other run computes them. `root` is the root of the
// default main program, and `fetches` are the outputs of the model.
void ReplaceCompositions(Block* root, const std::vector<std::string>& fetches);

// gelu (exact or by tanh), swish, hard_swish and mish, whatever the order of their products and
// sums.
void FindActivations(CompositionGraph* graph);
// layer_norm and rms_norm, with or without scale and shift.
void FindNormalizations(CompositionGraph* graph);
// Products of matrices, with or without a bias, of rows that a reshape has joined and a reshape
// splits again: products of all dims. The addition of the bias is then next to its readers.
void FindJoinedRows(CompositionGraph* graph);
// Keys that are transposed as a tensor of rank 3: one transpose.
void FindTransposes(CompositionGraph* graph);
// Attention in the form that the pass fuse_attention knows (attention_pattern.h): scaled queries,
// heads split from [N, L, C], and a mask that is added.
void FindAttention(CompositionGraph* graph);

}  // namespace skiff
