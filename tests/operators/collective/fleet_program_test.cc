// Ops that Fleet's transpiler puts into programs of PaddlePaddle, in the form that it gives them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/executor/executor.h"
#include "framework/ir/program.h"
#include "framework/tensor/tensor.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using ::testing::HasSubstr;

// Returns the ops that begin the startup program of a trainer. The id is a raw variable.
Program Startup(int32_t trainers) {
  Program program;
  program.root()->CreateVar({.name = "nccl_id_0", .kind = VarKind::kRaw, .persistable = true});
  Op id("c_gen_nccl_id");
  id.SetOutput("Out", {"nccl_id_0"}).SetAttr("rank", int32_t{0}).SetAttr("ring_id", int32_t{0});
  id.SetAttr("endpoint", std::string("127.0.0.1:6170"));
  id.SetAttr("other_endpoints", std::vector<std::string>{"127.0.0.1:6171"});
  program.root()->AppendOp(std::move(id));
  Op init("c_comm_init");
  init.SetInput("X", {"nccl_id_0"}).SetAttr("nranks", trainers).SetAttr("rank", int32_t{0});
  init.SetAttr("ring_id", int32_t{0}).SetAttr("device_id", int32_t{-1});
  program.root()->AppendOp(std::move(init));
  return program;
}

TEST(FleetPrograms, StartWithoutAConnectionOfTheirOwn) {
  Executor executor{Place::Cpu()};
  executor.Run(Startup(1));
}

TEST(FleetPrograms, RefuseToStartWithOtherRanks) {
  Executor executor{Place::Cpu()};
  EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition, [&] { executor.Run(Startup(2)); }),
              HasSubstr("c_comm_init: nranks = 2, and the run has 1 rank"));
}

// A gradient is scaled, summed in place, and awaited.
TEST(FleetPrograms, SumGradientsInPlace) {
  Program program;
  Block* root = program.root();
  root->CreateVar({.name = "g", .dtype = DType::kFloat32, .dims = {3}, .need_check_feed = true});
  const auto append = [&](const std::string& type, const AttributeMap& attrs) {
    Op op(type);
    op.attrs = attrs;
    op.SetInput("X", {"g"}).SetOutput("Out", {"g"});
    root->AppendOp(std::move(op));
  };
  append("scale", {{"scale", 0.5f}});
  append("c_sync_calc_stream", {});
  append("c_allreduce_sum", {{"ring_id", int32_t{0}}, {"use_calc_stream", false}});
  append("c_sync_comm_stream", {{"ring_id", int32_t{0}}});
  Executor executor{Place::Cpu()};
  Tensor g(Shape{3}, DType::kFloat32);
  for (int64_t i = 0; i < 3; ++i) g.data<float>()[i] = static_cast<float>(2 * i);
  const std::vector<Tensor> fetched = executor.Run(program, {{"g", g}}, {"g"});
  EXPECT_EQ(fetched[0].ToVector<float>(), (std::vector<float>{0, 1, 2}));
}

}  // namespace
}  // namespace skiff
