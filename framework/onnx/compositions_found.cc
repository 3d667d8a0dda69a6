#include "framework/onnx/compositions_found.h"

namespace skiff {

void ReplaceCompositions(Block* root, const std::vector<std::string>& fetches) {
  CompositionGraph graph(root, fetches);
  FindActivations(&graph);
  FindNormalizations(&graph);
  FindJoinedRows(&graph);
  FindTransposes(&graph);
  FindAttention(&graph);
  graph.Finish();
}

}  // namespace skiff
