// The op and the loop of the translation models compute the same, so that their times compare.
#include "tools/model_workload/seq2seq_workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "framework/io/parameters.h"
#include "skiff/skiff.h"
#include "tools/model_workload/model_workload.h"

namespace skiff {
namespace {

class DecodersOfSeq2Seq : public ::testing::TestWithParam<Seq2SeqWorkload> {};
INSTANTIATE_TEST_SUITE_P(Models, DecodersOfSeq2Seq, ::testing::ValuesIn(Seq2SeqWorkloads()),
                         [](const auto& info) { return info.param.name; });

TEST_P(DecodersOfSeq2Seq, HaveTheSameLosses) {
  const auto make = [&](const std::string& decoder, Executor* executor) {
    return MakeModelWorkload(GetParam().name,
                             {.batch_size = 3,
                              .optimizer = "plain_adam",
                              .decoder = decoder,
                              .pairs = {{4, 2}, {1, 5}, {3, 3}}},
                             executor);
  };
  Executor of_op, of_loop;
  const ModelWorkload op = make("attention_decoder", &of_op);
  const ModelWorkload loop = make("dynamic_rnn", &of_loop);
  // Initial values are drawn for each program.
  const std::vector<std::string> names = PersistableNames(*op.program);
  EXPECT_THAT(PersistableNames(*loop.program), ::testing::UnorderedElementsAreArray(names));
  for (const std::string& name : names) {
    of_loop.scope().Set(name, CopyToCpu(of_op.scope().Get(name)));
  }
  for (int step = 0; step < 3; ++step) {
    const float expected = of_op.Run(*op.program, op.batches[0], {op.fetch})[0].Item<float>();
    const float found = of_loop.Run(*loop.program, loop.batches[0], {loop.fetch})[0].Item<float>();
    EXPECT_NEAR(found, expected, 1e-4) << "step " << step;
  }
}

}  // namespace
}  // namespace skiff
