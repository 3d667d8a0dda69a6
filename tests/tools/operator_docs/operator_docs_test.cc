#include "tools/operator_docs/operator_docs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/io/file.h"
#include "framework/op/grad.h"

namespace skiff {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(OperatorDocs, AreThoseOfTheRegistry) {
  const std::string expected =
      OperatorDocs(DefaultOpRegistry(), ReadFile("tests/oracle/known_differences.txt"));
  EXPECT_TRUE(ReadFile("docs/operators.md") == expected)
      << "docs/operators.md is out of date; bazel run --config=opt //tools/operator_docs writes it";
}

OpDef Twice() {
  OpDef def;
  def.type = "twice";
  def.doc = "Out = X | X.";
  def.inputs = {{.name = "X", .doc = "Any |shape|.", .duplicable = true, .dispensable = true}};
  def.outputs = {{.name = "Out", .doc = "Like X."}};
  def.attrs = {{.name = "axes",
                .type = AttrType::kInts,
                .default_value = std::vector<int32_t>{1, 2},
                .doc = "Which."},
               {.name = "p", .type = AttrType::kFloat, .doc = "How much."}};
  def.infer = [](OpContext&) {};
  def.no_gradient_reason = "of no use";
  return def;
}

TEST(OperatorDocs, ShowSlotsAttributesKernelsAndWhatDiffers) {
  OpRegistry registry;
  registry.Add(Twice());
  registry.AddKernel("twice", {.name = "plain", .dtype = DType::kFloat32});
  registry.AddKernel("twice", {.name = "plain", .dtype = DType::kInt64});
  registry.AddKernel("twice", {.name = "not_in_every_build", .place = PlaceKind::kCuda});
  const std::string docs = OperatorDocs(registry,
                                        "# a comment\n"
                                        "twice.a.*  refused  it is slow\n"
                                        "twice.b.*  X.0  it is slow\n"
                                        "twice.c.*  X.0  it is wrong\n"
                                        "twice.d.*  skiff_refused  too hard\n"
                                        "other.c.*  X.0  it is another\n");
  EXPECT_THAT(docs, AllOf(HasSubstr("1 operators, 0 gradient operators"),
                          HasSubstr("## twice\n\nOut = X | X.\n"),
                          HasSubstr("| `X` | input, any number, optional | Any \\|shape\\|. |"),
                          HasSubstr("| `Out` | output | Like X. |"),
                          HasSubstr("| `axes` | ints = `[1, 2]` | Which. |"),
                          HasSubstr("| `p` | float, to be set | How much. |")));
  EXPECT_THAT(docs, AllOf(HasSubstr("\nCPU kernels: plain: float32, int64.\n"),
                          HasSubstr("No gradient: of no use.\n"),
                          HasSubstr("PaddlePaddle 2.6.2: it is slow; it is wrong; takes what Skiff "
                                    "refuses (too hard).\n"),
                          Not(HasSubstr("another"))));
}

TEST(OperatorDocs, PutAGradientUnderItsOp) {
  OpRegistry registry;
  OpDef forward = Twice();
  forward.no_gradient_reason = "";
  forward.grad = GradOp("twice_grad", {"Out@GRAD"}, {"X@GRAD"});
  registry.Add(forward);
  OpDef gradient = Twice();
  gradient.type = "twice_grad";
  gradient.doc = "X@GRAD = 2.";
  registry.Add(gradient);
  EXPECT_THAT(OperatorDocs(registry, ""), AllOf(HasSubstr("1 operators, 1 gradient operators"),
                                                HasSubstr("Gradient: `twice_grad`. X@GRAD = 2.\n"),
                                                Not(HasSubstr("## twice_grad"))));
}

}  // namespace
}  // namespace skiff
