#include "tests/harness/beam_search_loop.h"

#include "framework/builder/activation.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/nn.h"
#include "framework/builder/sequence.h"
#include "framework/builder/tensor_array_layers.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"

namespace skiff::harness {

layers::BeamSentences BeamSearchLoop(const BeamSearchSizes& sizes) {
  const layers::BeamSearchOptions options = {.beam_size = sizes.beam_size, .end_id = sizes.end_id};
  const Variable table = layers::Data("table", {sizes.tokens, sizes.tokens}, sizes.dtype);
  const Variable step = layers::FillConstant({1}, DType::kInt64, 0);
  const Variable most = layers::FillConstant({1}, DType::kInt64, static_cast<double>(sizes.most));
  const Variable states = layers::CreateArray(sizes.dtype);
  const Variable ids = layers::CreateArray(DType::kInt64);
  const Variable scores = layers::CreateArray(sizes.dtype);
  layers::ArrayWrite(layers::Data("first", {-1, sizes.tokens}, sizes.dtype), step, states);
  layers::ArrayWrite(layers::Data("ids", {-1, 1}, DType::kInt64, {.lod_level = 2}), step, ids);
  layers::ArrayWrite(layers::Data("scores", {-1, 1}, sizes.dtype, {.lod_level = 2}), step, scores);
  const Variable goes_on = layers::LessThan(step, most);
  layers::While loop(goes_on);
  loop.Body([&] {
    const Variable last = layers::ArrayRead(ids, step);
    const Variable score = layers::ArrayRead(scores, step);
    const Variable before = layers::SequenceExpand(layers::ArrayRead(states, step), score);
    const Variable token = layers::Gather(table, layers::Reshape(last, {-1}));
    const Variable state = layers::Tanh(before + token) * 3.0f;
    const Variable next = layers::Log(layers::Softmax(layers::LoDReset(state, score)));
    const Variable total = layers::ElementwiseAdd(next, layers::Reshape(score, {-1}), {.axis = 0});
    const layers::BeamSelection selected = layers::BeamSearch(last, score, {}, total, options);
    layers::Increment(step);
    layers::ArrayWrite(state, step, states);
    layers::ArrayWrite(selected.ids, step, ids);
    layers::ArrayWrite(selected.scores, step, scores);
    layers::AssignTo(layers::LogicalAnd(layers::LessThan(step, most),
                                        layers::LogicalNot(layers::IsEmpty(selected.ids))),
                     goes_on);
  });
  return layers::BeamSearchDecode(ids, scores, options);
}

}  // namespace skiff::harness
