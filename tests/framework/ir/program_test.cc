#include "framework/ir/program.h"

#include <gtest/gtest.h>

#include <limits>

#include "framework/base/error.h"
#include "framework/ir/text.h"
#include "tests/framework/ir/random_program.h"
#include "tests/harness/error_text.h"

namespace skiff {
namespace {

using Names = std::vector<std::string>;

template <typename Call>
ErrorCode CodeOf(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::kIo;
}

std::vector<std::string> TypesOf(const Block& block) {
  std::vector<std::string> types;
  for (const auto& op : block.ops()) types.push_back(op->type);
  return types;
}

Names VarsOf(const Block& block) {
  Names names;
  for (const auto& var : block.vars()) names.push_back(var->name);
  return names;
}

// ---- Op

TEST(Op, FindsArgumentsBySlot) {
  Op op("sum");
  op.SetInput("X", {"a", "b"}).SetOutput("Out", {"c"});
  EXPECT_EQ(op.Input("X"), (Names{"a", "b"}));
  EXPECT_EQ(op.Output("Out"), (Names{"c"}));
  EXPECT_TRUE(op.Input("Out").empty());
  op.SetInput("X", {"d"});
  EXPECT_EQ(op.Input("X"), (Names{"d"}));
  EXPECT_EQ(op.inputs.size(), 1u);
}

TEST(Op, ListsVariablesWithoutTheEmptyName) {
  Op op("f");
  op.SetInput("B", {"x", "@EMPTY@", "x"}).SetInput("A", {"y"}).SetOutput("Out", {"@EMPTY@"});
  EXPECT_EQ(op.InputNames(), (Names{"x", "x", "y"}));
  EXPECT_TRUE(op.OutputNames().empty());
}

TEST(Op, GivesAttributesOfTheirType) {
  Op op("scale");
  op.SetAttr("scale", 0.5f)
      .SetAttr("name", std::string("s"))
      .SetAttr("shape", std::vector<int64_t>{2, 3});
  EXPECT_EQ(op.Attr<float>("scale"), 0.5f);
  EXPECT_EQ(op.Attr<std::string>("name"), "s");
  EXPECT_EQ(op.Attr<std::vector<int64_t>>("shape"), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(op.Attr<int32_t>("axis", -1), -1);
  EXPECT_TRUE(op.HasAttr("scale"));
  EXPECT_FALSE(op.HasAttr("axis"));
}

TEST(Op, NamesTheAttributeThatIsMissingOrOfAnotherType) {
  Op op("scale");
  op.SetAttr("scale", 0.5f);
  EXPECT_EQ(CodeOf([&] { op.Attr<int32_t>("axis"); }), ErrorCode::kNotFound);
  EXPECT_EQ(CodeOf([&] { op.Attr<int32_t>("scale"); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf([&] { op.Attr<int32_t>("scale", 1); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(ErrorText([&] { op.Attr<std::vector<int32_t>>("scale"); }),
            "scale: attribute \"scale\" is of type float, expected ints");
}

TEST(Op, ListsSubBlocks) {
  Op op("conditional");
  op.SetAttr("a", std::vector<BlockIndex>{{2}, {3}}).SetAttr("b", BlockIndex{1}).SetAttr("c", 9);
  EXPECT_EQ(op.SubBlocks(), (std::vector<int32_t>{2, 3, 1}));
}

TEST(Op, EqualityIgnoresIdAndSite) {
  Op a("f");
  Op b("f");
  b.id = 7;
  b.site = {"net.cc", 3};
  EXPECT_EQ(a, b);
  b.is_target = true;
  EXPECT_FALSE(a == b);
}

TEST(Op, EqualityComparesFloatsBitByBit) {
  Op a("f");
  Op b("f");
  a.SetAttr("x", std::numeric_limits<float>::quiet_NaN());
  b.SetAttr("x", std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(a, b);
  a.SetAttr("x", std::vector<double>{0.0});
  b.SetAttr("x", std::vector<double>{-0.0});
  EXPECT_FALSE(a == b);
}

TEST(AttrTypes, AreNamedInTheOrderOfFluidsEnum) {
  EXPECT_EQ(AttrTypeName(TypeOf(Attribute(1))), "int");
  EXPECT_EQ(AttrTypeName(TypeOf(Attribute(true))), "bool");
  EXPECT_EQ(AttrTypeName(TypeOf(Attribute(BlockIndex{1}))), "block");
  EXPECT_EQ(AttrTypeName(TypeOf(Attribute(int64_t{1}))), "long");
  EXPECT_EQ(AttrTypeName(TypeOf(Attribute(1.0))), "double");
  EXPECT_EQ(AttrTypeName(AttrType::kVars), "vars");
  EXPECT_EQ(ErrorText([] { AttrTypeName(static_cast<AttrType>(16)); }),
            "unknown attribute type 16");
}

TEST(VarKinds, NamesReadBack) {
  EXPECT_EQ(VarKindFromName(VarKindName(VarKind::kLoDTensorArray)), VarKind::kLoDTensorArray);
  EXPECT_EQ(ErrorText([] { VarKindFromName("tensor"); }), "unknown variable kind \"tensor\"");
  EXPECT_EQ(ErrorText([] { VarKindName(static_cast<VarKind>(16)); }), "unknown variable kind 16");
  EXPECT_FALSE(IsVarKind(16));
  EXPECT_TRUE(IsVarKind(17));
}

// ---- Block

TEST(Block, GivesIdsInOrderAndKeepsThoseThatAreThere) {
  Program program;
  EXPECT_EQ(program.root()->AppendOp(Op("a"))->id, 0);
  Op with_id("b");
  with_id.id = 5;
  EXPECT_EQ(program.root()->AppendOp(with_id)->id, 5);
  EXPECT_EQ(program.root()->AppendOp(Op("c"))->id, 6);
}

TEST(Block, GivesACopyOfAnOpAnIdOfItsOwn) {
  Program program;
  Block* root = program.root();
  Block* inner = program.AppendBlock(0);
  root->AppendOp(Op("a"));
  EXPECT_EQ(root->InsertOp(0, *root->ops()[0])->id, 1);
  EXPECT_EQ(inner->AppendOp(*root->ops()[0])->id, 2);
  EXPECT_EQ(root->AppendOp(*inner->ops()[0])->id, 3);
  // One that is taken out and put elsewhere stays what it is.
  const Op moved = *root->ops()[0];
  root->RemoveOps(0, 1);
  EXPECT_FALSE(program.HasOpId(moved.id));
  EXPECT_EQ(inner->AppendOp(moved)->id, moved.id);
}

TEST(Block, AppendsAnOpWithTheIdThatItHas) {
  Program program;
  Block* block = program.root();
  block->AppendOp(Op("a"));
  Op op("b");
  op.id = 7;
  EXPECT_EQ(block->AppendOpWithId(op)->id, 7);
  op = Op("c");
  op.id = 3;
  EXPECT_EQ(block->AppendOpWithId(op)->id, 3);
  EXPECT_EQ(TypesOf(*block), (Names{"a", "b", "c"}));
  // Later ops, of any block, get none of these ids.
  EXPECT_EQ(block->AppendOp(Op("d"))->id, 8);
  EXPECT_EQ(program.AppendBlock(0)->AppendOp(Op("e"))->id, 9);
}

TEST(Block, InsertsBeforeThePosition) {
  Program program;
  Block* block = program.root();
  block->AppendOp(Op("b"));
  block->InsertOp(0, Op("a"));
  block->InsertOp(2, Op("c"));
  EXPECT_EQ(TypesOf(*block), (Names{"a", "b", "c"}));
  EXPECT_EQ(CodeOf([&] { block->InsertOp(4, Op("d")); }), ErrorCode::kOutOfRange);
}

TEST(Block, KeepsTheAddressesOfOpsAndVars) {
  Program program;
  Block* block = program.root();
  const Op* first = block->AppendOp(Op("a"));
  const Var* x = block->CreateVar({.name = "x"});
  for (int i = 0; i < 100; ++i) {
    block->InsertOp(0, Op("b"));
    block->CreateVar({.name = StrCat("v", i)});
  }
  EXPECT_EQ(block->ops().back().get(), first);
  EXPECT_EQ(block->FindLocalVar("x"), x);
}

TEST(Block, RemovesARangeOfOps) {
  Program program;
  Block* block = program.root();
  for (const char* type : {"a", "b", "c", "d"}) block->AppendOp(Op(type));
  block->RemoveOps(1, 3);
  EXPECT_EQ(TypesOf(*block), (Names{"a", "d"}));
  block->RemoveOps(2, 2);
  EXPECT_EQ(CodeOf([&] { block->RemoveOps(1, 3); }), ErrorCode::kOutOfRange);
  EXPECT_EQ(CodeOf([&] { block->RemoveOps(1, 0); }), ErrorCode::kOutOfRange);
  EXPECT_EQ(TypesOf(*block), (Names{"a", "d"}));
}

TEST(Block, ReordersAndDropsTheOpsNotNamed) {
  Program program;
  Block* block = program.root();
  for (const char* type : {"a", "b", "c", "d"}) block->AppendOp(Op(type));
  block->ReorderOps({3, 0, 2});
  EXPECT_EQ(TypesOf(*block), (Names{"d", "a", "c"}));
  EXPECT_EQ(block->ops()[0]->id, 3);
}

TEST(Block, LeavesOpsAloneIfAnOrderIsWrong) {
  Program program;
  Block* block = program.root();
  for (const char* type : {"a", "b"}) block->AppendOp(Op(type));
  EXPECT_EQ(CodeOf([&] { block->ReorderOps({1, 2}); }), ErrorCode::kOutOfRange);
  EXPECT_EQ(CodeOf([&] { block->ReorderOps({1, 1}); }), ErrorCode::kInvalidArgument);
  EXPECT_EQ(TypesOf(*block), (Names{"a", "b"}));
}

TEST(Block, FindsVariablesOfItsAncestors) {
  Program program;
  Block* outer = program.AppendBlock(0);
  Block* inner = program.AppendBlock(1);
  Var* root_x = program.root()->CreateVar({.name = "x"});
  Var* outer_x = outer->CreateVar({.name = "x"});
  Var* w = program.root()->CreateVar({.name = "w"});
  EXPECT_EQ(inner->FindVar("x"), outer_x);
  EXPECT_EQ(program.root()->FindVar("x"), root_x);
  EXPECT_EQ(inner->FindVar("w"), w);
  EXPECT_EQ(inner->FindLocalVar("w"), nullptr);
  EXPECT_EQ(inner->FindVar("y"), nullptr);
  EXPECT_EQ(CodeOf([&] { inner->GetVar("y"); }), ErrorCode::kNotFound);
}

TEST(Block, DetachedBlocksSeeNoOtherVariables) {
  Program program;
  program.root()->CreateVar({.name = "x"});
  const Block* detached = program.AppendBlock(-1);
  EXPECT_EQ(detached->parent(), nullptr);
  EXPECT_EQ(detached->FindVar("x"), nullptr);
}

TEST(Block, RefusesNamesThatAreEmptyOrTaken) {
  Program program;
  program.root()->CreateVar({.name = "x"});
  EXPECT_EQ(CodeOf([&] { program.root()->CreateVar({.name = "x"}); }), ErrorCode::kAlreadyExists);
  EXPECT_EQ(CodeOf([&] { program.root()->CreateVar({}); }), ErrorCode::kInvalidArgument);
}

TEST(Block, RemovesVariables) {
  Program program;
  for (const char* name : {"a", "b", "c", "d"}) program.root()->CreateVar({.name = name});
  program.root()->RemoveVar("b");
  program.root()->RemoveVar("no such");
  EXPECT_EQ(VarsOf(*program.root()), (Names{"a", "c", "d"}));
  program.root()->RemoveVars({"a", "d", "d"});
  EXPECT_EQ(VarsOf(*program.root()), (Names{"c"}));
  EXPECT_EQ(program.root()->FindVar("a"), nullptr);
  program.root()->CreateVar({.name = "a"});
}

// ---- Program

TEST(Program, StartsWithAnEmptyRoot) {
  const Program program;
  EXPECT_EQ(program.block_count(), 1u);
  EXPECT_EQ(program.root()->parent(), nullptr);
  EXPECT_TRUE(program.root()->ops().empty());
}

TEST(Program, RefusesBlocksAndParentsThatAreNotThere) {
  Program program;
  EXPECT_EQ(CodeOf([&] { program.block(1); }), ErrorCode::kOutOfRange);
  EXPECT_EQ(CodeOf([&] { program.block(-1); }), ErrorCode::kOutOfRange);
  EXPECT_EQ(CodeOf([&] { program.AppendBlock(1); }), ErrorCode::kOutOfRange);
  EXPECT_EQ(CodeOf([&] { program.AppendBlock(-2); }), ErrorCode::kOutOfRange);
  EXPECT_EQ(program.AppendBlock(0)->index(), 1);
}

TEST(Program, UniqueNamesAvoidVariablesOfEveryBlock) {
  Program program;
  program.AppendBlock(0)->CreateVar({.name = "fc_1"});
  EXPECT_EQ(program.UniqueName("fc"), "fc_0");
  EXPECT_EQ(program.UniqueName("fc"), "fc_2");
  EXPECT_EQ(program.UniqueName("conv"), "conv_0");
  EXPECT_EQ(program.Clone()->UniqueName("fc"), "fc_3");
}

// A root with the variable x and an op, and a sub-block.
Program SmallProgram() {
  Program program;
  program.seed = 7;
  program.version = 3;
  program.op_versions = {{"relu", 1}};
  program.root()->CreateVar({.name = "x"});
  program.root()->AppendOp(Op("relu"));
  program.AppendBlock(0);
  return program;
}

void ExpectIsNew(Program& program) {
  EXPECT_EQ(program.block_count(), 1u);
  EXPECT_TRUE(program == Program());
  EXPECT_EQ(program.seed, 0u);
  EXPECT_EQ(program.version, 0);
  EXPECT_TRUE(program.op_versions.empty());
  EXPECT_EQ(program.root()->program(), &program);
  EXPECT_EQ(program.root()->AppendOp(Op("relu"))->id, 0);
  EXPECT_EQ(program.UniqueName("x"), "x_0");
}

TEST(Program, MovesWithItsBlocksVariablesAndOps) {
  Program from = SmallProgram();
  from.UniqueName("x");
  Block* root = from.root();
  Block* body = from.block(1);
  const Var* x = root->FindVar("x");
  const Op* op = root->ops()[0].get();
  const std::unique_ptr<Program> copy = from.Clone();

  Program to = std::move(from);
  EXPECT_TRUE(to == *copy);
  EXPECT_EQ(to.seed, 7u);
  EXPECT_EQ(to.version, 3);
  EXPECT_EQ(to.op_versions, copy->op_versions);
  EXPECT_EQ(to.root(), root);
  EXPECT_EQ(to.block(1), body);
  EXPECT_EQ(root->program(), &to);
  EXPECT_EQ(body->parent(), root);
  EXPECT_EQ(body->FindVar("x"), x);
  EXPECT_EQ(root->ops()[0].get(), op);
  // Names and ids go on from where they were.
  EXPECT_EQ(to.UniqueName("x"), "x_1");
  EXPECT_EQ(root->AppendOp(Op("relu"))->id, 1);
  ExpectIsNew(from);
}

TEST(Program, IsReplacedByAMove) {
  Program from = SmallProgram();
  Program to = SmallProgram();
  to.root()->CreateVar({.name = "y"});
  Block* root = from.root();
  to = std::move(from);
  EXPECT_EQ(to.root(), root);
  EXPECT_EQ(root->program(), &to);
  EXPECT_EQ(to.root()->FindVar("y"), nullptr);
  ExpectIsNew(from);
  from = std::move(to);
  EXPECT_EQ(from.root(), root);
  EXPECT_EQ(root->program(), &from);
  // An assignment to itself changes nothing.
  Program& same = from;
  from = std::move(same);
  EXPECT_TRUE(from == SmallProgram());
}

TEST(Clone, IsEqualAndKeepsIdsAndSettings) {
  for (uint32_t seed = 0; seed < 50; ++seed) {
    const auto program = RandomProgram(seed);
    const auto clone = program->Clone();
    ASSERT_TRUE(*clone == *program) << "seed " << seed;
    EXPECT_EQ(clone->seed, program->seed);
    EXPECT_EQ(clone->version, program->version);
    EXPECT_EQ(clone->op_versions, program->op_versions);
    for (int32_t i = 0; i < static_cast<int32_t>(program->block_count()); ++i) {
      for (size_t k = 0; k < program->block(i)->ops().size(); ++k) {
        ASSERT_EQ(clone->block(i)->ops()[k]->id, program->block(i)->ops()[k]->id);
        ASSERT_EQ(clone->block(i)->ops()[k]->site.file, program->block(i)->ops()[k]->site.file);
      }
    }
    EXPECT_EQ(clone->NextOpId(), program->NextOpId());
  }
}

TEST(Clone, SharesNothingWithTheOriginal) {
  Program program;
  program.root()->CreateVar({.name = "x", .dims = {1}});
  program.root()->AppendOp(Op("f"));
  const auto clone = program.Clone();
  clone->root()->FindVar("x")->dims = {2};
  clone->root()->ops()[0]->type = "g";
  clone->AppendBlock(0);
  EXPECT_EQ(program.root()->FindVar("x")->dims, (std::vector<int64_t>{1}));
  EXPECT_EQ(program.root()->ops()[0]->type, "f");
  EXPECT_EQ(program.block_count(), 1u);
}

TEST(Program, EqualityLooksAtBlocksVarsAndOps) {
  const auto program =
      ParseProgramText("program { block 0 { var x float32 [1] {Out: [x]} = f() } }");
  const auto changed = [&program](const auto& change) {
    const auto clone = program->Clone();
    change(clone.get());
    return !(*clone == *program);
  };
  EXPECT_FALSE(changed([](Program* p) { p->seed = 9; }));
  EXPECT_TRUE(changed([](Program* p) { p->AppendBlock(0); }));
  EXPECT_TRUE(changed([](Program* p) { p->root()->forward_block_index = 0; }));
  EXPECT_TRUE(changed([](Program* p) { p->root()->CreateVar({.name = "y"}); }));
  EXPECT_TRUE(changed([](Program* p) { p->root()->FindVar("x")->dtype = DType::kInt8; }));
  EXPECT_TRUE(changed([](Program* p) { p->root()->FindVar("x")->trainable = false; }));
  EXPECT_TRUE(changed([](Program* p) { p->root()->RemoveOps(0, 1); }));
  EXPECT_TRUE(changed([](Program* p) { p->root()->ops()[0]->SetAttr("a", 1); }));
}

// ---- CloneForTest

constexpr const char* kTraining = R"(
program seed=3 {
  block 0 {
    var x float32 [-1, 4]
    param w float32 [4, 2] persistable
    var h float32 [-1, 2]
    var mask uint8 [-1, 2]
    var d float32 [-1, 2]
    var h@GRAD float32 [-1, 2]
    var w@GRAD float32 [4, 2]
    var lr float32 [1] persistable
    {Out: [h]} = mul(X: [x], Y: [w])
    {Out: [d], Mask: [mask]} = dropout(X: [h]) {is_test = false, op_role = 256}
    {} = loop(X: [d]) {sub_block = block 1}
    {X@GRAD: [h@GRAD]} = dropout_grad(Mask: [mask]) {op_role = 1, is_test = false}
    {} = loop_grad() {op_role = 257, sub_block = block 2}
    {Out: [lr]} = increment(X: [lr]) {op_role = 16}
    {ParamOut: [w]} = sgd(Param: [w], Grad: [w@GRAD], LearningRate: [lr]) {op_role = 2}
  }
  block 1 parent=0 {
    var inner float32 [1]
    {Y: [inner]} = batch_norm(X: [d])
    {Out: [inner]} = scale(X: [inner]) {op_role = 1}
  }
  block 2 parent=0 forward=1 {
    var inner@GRAD float32 [1]
    {Out: [inner@GRAD]} = fill()
  }
}
)";

TEST(CloneForTest, DropsTrainingOpsAndTheirVariables) {
  const auto program = ParseProgramText(kTraining);
  const auto test = program->CloneForTest({"batch_norm"});
  const auto expected = ParseProgramText(R"(
program seed=3 {
  block 0 {
    var x float32 [-1, 4]
    param w float32 [4, 2] persistable
    var h float32 [-1, 2]
    var mask uint8 [-1, 2]
    var d float32 [-1, 2]
    {Out: [h]} = mul(X: [x], Y: [w])
    {Out: [d], Mask: [mask]} = dropout(X: [h]) {is_test = true, op_role = 256}
    {} = loop(X: [d]) {sub_block = block 1}
  }
  block 1 parent=0 {
    var inner float32 [1]
    {Y: [inner]} = batch_norm(X: [d]) {is_test = true}
  }
  block 2 parent=0 forward=1 {
  }
})");
  EXPECT_EQ(PrintProgram(*test), PrintProgram(*expected));
}

// Whatever a run computes from what training ops alone compute; but a variable that other ops
// write, or that outlives the run, is there without them.
TEST(CloneForTest, DropsWhatNeedsTrainingOps) {
  const auto program = ParseProgramText(R"(
program {
  block 0 {
    var x float32 [2]
    var h float32 [2]
    var g float32 [2]
    var twice float32 [2]
    var norm float32 [1]
    param w float32 [2] persistable
    var y float32 [2]
    {Out: [h]} = square(X: [x])
    {Out: [g]} = square_grad(X: [h]) {op_role = 1}
    {Out: [twice]} = scale(X: [g])
    {Out: [norm]} = norm(X: [twice])
    {ParamOut: [w], Other: [h]} = sgd(Param: [w], Grad: [g]) {op_role = 2}
    {Out: [y]} = elementwise_mul(X: [h], Y: [w])
    {Out: [g]} = square(X: [y])
    {Out: [norm]} = norm(X: [g])
  }
})");
  std::vector<std::string> types;
  const auto test = program->CloneForTest();
  for (const auto& op : test->root()->ops()) {
    types.push_back(StrCat(op->type, " ", op->Output("Out")[0]));
  }
  EXPECT_EQ(types,
            (std::vector<std::string>{"square h", "elementwise_mul y", "square g", "norm norm"}));
}

TEST(CloneForTest, KeepsOpIds) {
  const auto program = ParseProgramText(kTraining);
  const auto test = program->CloneForTest();
  for (size_t i = 0; i < test->root()->ops().size(); ++i) {
    EXPECT_EQ(test->root()->ops()[i]->id, program->root()->ops()[i]->id);
  }
}

TEST(CloneForTest, KeepsVariablesThatOnlyAnAttributeNames) {
  const auto program = ParseProgramText(
      "program { block 0 { var a int32 [1] var b int32 [1] var c int32 [1] "
      "{} = f() {axis = var a, shape = vars [b], note = \"c\"} } }");
  EXPECT_EQ(VarsOf(*program->CloneForTest()->root()), (Names{"a", "b"}));
}

// ---- Prune

constexpr const char* kNet = R"(
program {
  block 0 {
    var x float32 [-1, 4]
    var label int64 [-1, 1]
    param w float32 [4, 2] persistable
    var h float32 [-1, 2]
    var p float32 [-1, 2]
    var loss float32 [1]
    var acc float32 [1]
    {Out: [h]} = mul(X: [x], Y: [w])
    {Out: [p]} = softmax(X: [h])
    {Out: [loss]} = cross_entropy(X: [p], Label: [label])
    {Out: [acc]} = accuracy(X: [p], Label: [label])
    {ParamOut: [w]} = sgd(Param: [w])
  }
}
)";

TEST(Prune, KeepsWhatTheTargetsNeed) {
  const auto pruned = ParseProgramText(kNet)->Prune({"x"}, {"p"});
  EXPECT_EQ(TypesOf(*pruned->root()), (Names{"mul", "softmax"}));
  EXPECT_EQ(VarsOf(*pruned->root()), (Names{"x", "w", "h", "p"}));
}

TEST(Prune, KeepsIdsOfOps) {
  const auto pruned = ParseProgramText(kNet)->Prune({"x", "label"}, {"acc"});
  EXPECT_EQ(TypesOf(*pruned->root()), (Names{"mul", "softmax", "accuracy"}));
  EXPECT_EQ(pruned->root()->ops()[2]->id, 3);
}

TEST(Prune, StopsAtFeedsInTheMiddle) {
  const auto pruned = ParseProgramText(kNet)->Prune({"h"}, {"p"});
  EXPECT_EQ(TypesOf(*pruned->root()), (Names{"softmax"}));
  EXPECT_EQ(VarsOf(*pruned->root()), (Names{"h", "p"}));
}

TEST(Prune, KeepsFeedsThatAreNotRead) {
  const auto pruned = ParseProgramText(kNet)->Prune({"x", "label"}, {"p"});
  EXPECT_EQ(VarsOf(*pruned->root()), (Names{"x", "label", "w", "h", "p"}));
}

TEST(Prune, KeepsInPlaceUpdatesOfAFeed) {
  const auto program = ParseProgramText(
      "program { block 0 { var x float32 [1] var y float32 [1]"
      " {Out: [x]} = increment(X: [x]) {Out: [y]} = relu(X: [x]) } }");
  EXPECT_EQ(TypesOf(*program->Prune({"x"}, {"y"})->root()), (Names{"increment", "relu"}));
}

TEST(Prune, KeepsEveryEarlierWriterOfAVariable) {
  const auto program = ParseProgramText(
      "program { block 0 { var a float32 [1] var b float32 [1]"
      " {Out: [a]} = fill() {Out: [a]} = increment(X: [a]) {Out: [b]} = f(X: [a])"
      " {Out: [a]} = fill_later() } }");
  EXPECT_EQ(TypesOf(*program->Prune({}, {"b"})->root()), (Names{"fill", "increment", "f"}));
}

TEST(Prune, FollowsCapturesOfSubBlocksAndEmptiesTheOthers) {
  const auto program = ParseProgramText(R"(
program {
  block 0 {
    var a float32 [1]
    var b float32 [1]
    var c float32 [1]
    var out float32 [1]
    {Out: [a]} = fill_a()
    {Out: [b]} = fill_b()
    {Out: [c]} = fill_c()
    {} = while_unused() {sub_block = block 1}
    {} = while() {sub_block = block 2}
  }
  block 1 parent=0 {
    {Out: [c]} = f(X: [b])
  }
  block 2 parent=0 {
    var c float32 [1]
    {Out: [c]} = g()
    {} = inner() {sub_block = block 3}
  }
  block 3 parent=2 {
    {Out: [out]} = h(X: [a], Y: [c])
  }
})");
  const auto pruned = program->Prune({}, {"out"});
  EXPECT_EQ(TypesOf(*pruned->root()), (Names{"fill_a", "while"}));
  EXPECT_EQ(VarsOf(*pruned->root()), (Names{"a", "out"}));
  ASSERT_EQ(pruned->block_count(), 4u);
  EXPECT_TRUE(pruned->block(1)->ops().empty());
  EXPECT_EQ(TypesOf(*pruned->block(2)), (Names{"g", "inner"}));
  EXPECT_EQ(TypesOf(*pruned->block(3)), (Names{"h"}));
}

TEST(Prune, RefusesTargetsThatNothingGives) {
  const auto program = ParseProgramText(kNet);
  EXPECT_EQ(CodeOf([&] { program->Prune({"x"}, {"nothing"}); }), ErrorCode::kNotFound);
  EXPECT_EQ(CodeOf([&] { program->Prune({"x"}, {"label"}); }), ErrorCode::kInvalidArgument);
  EXPECT_NO_THROW(program->Prune({"label"}, {"label"}));
  // Persistable: its value is in the scope. Its update is what the target asks for.
  EXPECT_EQ(TypesOf(*program->Prune({}, {"w"})->root()), (Names{"sgd"}));
}

TEST(Program, SaysWhatIsWrongAndWhatItHas) {
  Program program;
  Block* root = program.root();
  root->CreateVar({.name = "x"});
  root->AppendOp(Op("f"));
  EXPECT_EQ(ErrorText([&] { program.block(3); }), "no block 3: the program has 1");
  EXPECT_EQ(ErrorText([&] { program.AppendBlock(-2); }),
            "a new block can't have the parent -2: the program has 1 blocks");
  EXPECT_EQ(ErrorText([&] { root->CreateVar({.name = "x"}); }),
            "block 0: variable \"x\" exists already");
  EXPECT_EQ(ErrorText([&] { root->CreateVar({}); }),
            "block 0: a variable needs a name, found an empty one");
  EXPECT_EQ(ErrorText([&] { root->GetVar("y"); }),
            "block 0: no variable \"y\" in it or its ancestors");
  EXPECT_EQ(ErrorText([&] { root->InsertOp(2, Op("g")); }),
            "block 0: can't insert op g at position 2 of 1 ops");
  EXPECT_EQ(ErrorText([&] { root->RemoveOps(0, 2); }), "block 0: can't remove the ops [0, 2) of 1");
  EXPECT_EQ(ErrorText([&] { root->ReorderOps({0, 0}); }), "block 0: order names op 0 twice");
  EXPECT_EQ(ErrorText([&] { root->ops()[0]->Attr<int32_t>("axis"); }),
            "f: attribute \"axis\" is not set");
  root->ops()[0]->SetAttr("axis", 0.5f);
  EXPECT_EQ(ErrorText([&] { root->ops()[0]->Attr<int32_t>("axis"); }),
            "f: attribute \"axis\" is of type float, expected int");
}

// Codec and verifier refuse them; a program made in memory may have them all the same.
TEST(Program, CopiesInPartNameTheOpWhoseSubBlockIsNotThere) {
  const auto with_block = [](const std::string& block) {
    return ParseProgramText(
        "program { block 0 { var a int32 [1] {Out: [a]} = f() }"
        " block 1 parent=0 { {} = g() {} = while() {sub = " +
        block + "} } }");
  };
  for (const auto& [block, index] :
       {std::pair("block 2", "2"), {"block -1", "-1"}, {"blocks [1, 9]", "9"}}) {
    const auto program = with_block(block);
    const std::string message = StrCat("block 1, op #1 \"while\": an attribute names block ", index,
                                       ", expected one in [0, 2)");
    EXPECT_EQ(ErrorText([&] { program->CloneForTest(); }), message);
    EXPECT_EQ(ErrorText([&] { program->Prune({}, {"a"}); }), message);
    EXPECT_EQ(CodeOf([&] { program->CloneForTest(); }), ErrorCode::kOutOfRange);
    EXPECT_TRUE(*program->Clone() == *program);
  }
}

TEST(Prune, EndsOnSubBlocksThatReferToEachOther) {
  const auto program = ParseProgramText(
      "program { block 0 { var a int32 [1] {Out: [a]} = f() {b = block 1} }"
      " block 1 parent=0 { {} = g() {b = block 2} } block 2 parent=0 { {} = h() {b = block 1} } }");
  EXPECT_EQ(program->Prune({}, {"a"})->block(2)->ops().size(), 1u);
  EXPECT_EQ(program->CloneForTest()->block(2)->ops().size(), 1u);
}

}  // namespace
}  // namespace skiff
