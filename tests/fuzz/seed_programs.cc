#include "tests/fuzz/seed_programs.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "framework/autodiff/append_backward.h"
#include "framework/builder/beam_search.h"
#include "framework/builder/control.h"
#include "framework/builder/control_flow.h"
#include "framework/builder/data.h"
#include "framework/builder/dynamic_rnn.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/sequence.h"
#include "framework/builder/static_rnn.h"
#include "framework/builder/tensor.h"
#include "framework/builder/tensor_array.h"
#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/io/npz.h"
#include "framework/ir/codec.h"
#include "framework/ir/text.h"
#include "tests/harness/all_cases.h"
#include "tests/harness/random_ragged_workload.h"
#include "tests/harness/random_workload.h"
#include "tests/harness/sgd_training.h"

namespace skiff::fuzz {
namespace {

using layers::While;

constexpr int64_t kRows = 3;
constexpr int64_t kWidth = 4;

Tensor Numbers(const Shape& shape, int seed = 1) { return harness::SmallNumbers(shape, seed); }

Tensor Integers(const Shape& shape, const std::vector<int64_t>& values) {
  return Tensor::FromValues<int64_t>(shape, values);
}

Tensor Ragged(Tensor rows, const std::vector<int64_t>& lengths) {
  rows.set_lod({OffsetsOf(lengths)});
  return rows;
}

harness::NamedTensors VariablesOf(const Executor& executor) {
  harness::NamedTensors variables;
  for (const std::string& name : executor.scope().Names()) {
    variables.emplace(name, CopyToCpu(executor.scope().Get(name)));
  }
  return variables;
}

// The fetches are what `build` returns; the first one is trained, if the seed trains.
class Builder {
 public:
  explicit Builder(std::vector<Seed>* seeds) : seeds_(*seeds) {}

  void Train(const std::string& name, const FeedList& feeds,
             const std::function<Variables()>& build) {
    Add(name, feeds, [&] {
      const Variables results = build();
      optimizer::Sgd({.learning_rate = 0.1}).Minimize(results[0]);
      return results;
    });
    Add(name + "_forward", feeds, build);
  }

  void Add(const std::string& name, const FeedList& feeds,
           const std::function<Variables()>& build) {
    auto main = std::make_shared<Program>();
    Program startup;
    main->seed = startup.seed = 7;
    Seed seed{.name = name, .program = main, .variables = {}, .feeds = feeds, .fetches = {}};
    {
      const ProgramGuard guard(main.get(), &startup);
      for (const Variable& result : build()) seed.fetches.push_back(result.name());
    }
    Executor executor(Place::Cpu());
    executor.Run(startup);
    seed.variables = VariablesOf(executor);
    seeds_.push_back(std::move(seed));
  }

 private:
  std::vector<Seed>& seeds_;
};

Variable Matrix(const Variable& x, const std::string& name, int64_t width = kWidth) {
  return layers::Fc(x, width, {.param_attr = {.name = name}, .bias_attr = std::nullopt});
}

// With a parameter, so that each loss has one.
Variable Loss(const Variable& x) {
  const Variable scale = layers::CreateParameter({1}, DType::kFloat32, {.name = "scale"});
  return layers::Mean(layers::Square(x * scale));
}

Variable Index(int64_t value) { return layers::FillConstant({1}, DType::kInt64, double(value)); }

Variable Input(const std::string& name = "x") {
  return layers::Data(name, {-1, kWidth}, DType::kFloat32, {.stop_gradient = false});
}

Variable RaggedInput(const std::string& name = "x", int64_t width = kWidth) {
  return layers::Data(name, {-1, width}, DType::kFloat32, {.lod_level = 1, .stop_gradient = false});
}

void ForEach(const Variable& n, const std::function<void(const Variable&)>& body) {
  const Variable i = Index(0);
  const Variable goes_on = layers::LessThan(i, n);
  While loop(goes_on);
  loop.Body([&] {
    body(i);
    layers::Increment(i);
    layers::AssignTo(layers::LessThan(i, n), goes_on);
  });
}

void AddLoops(Builder* builder) {
  const FeedList x_and_n = {{"x", Numbers({kRows, kWidth})}, {"n", Integers({1}, {3})}};
  const auto count = [] { return layers::Data("n", {1}, DType::kInt64); };
  builder->Train("while", x_and_n, [&] {
    const Variable x = Input();
    const Variable h =
        layers::FillConstant({kRows, kWidth}, DType::kFloat32, 0.5).StopGradient(false);
    ForEach(count(), [&](const Variable&) {
      layers::AssignTo(layers::Tanh(Matrix(x, "u") + Matrix(h, "w")), h);
    });
    return Variables{Loss(h), h};
  });
  builder->Train("nested_while", x_and_n, [&] {
    const Variable x = Input();
    const Variable n = count();
    const Variable h = layers::Assign(x);
    ForEach(n, [&](const Variable& i) {
      ForEach(i, [&](const Variable&) { layers::AssignTo(layers::Tanh(Matrix(h, "w")), h); });
    });
    return Variables{Loss(h)};
  });
  builder->Train("cond", {x_and_n[0], {"flag", Tensor::FromValues<bool>({1}, {true})}}, [&] {
    const Variable x = Input();
    const Variable flag = layers::Data("flag", {1}, DType::kBool);
    const Variables out = layers::Cond(
        flag, [&] { return Variables{Matrix(x, "b")}; },
        [&] { return Variables{layers::Tanh(x)}; });
    return Variables{Loss(out[0]), out[0]};
  });
  builder->Train("switch_in_while", x_and_n, [&] {
    const Variable x = Input();
    const Variable h = layers::Assign(x);
    ForEach(count(), [&](const Variable& i) {
      layers::Switch choose;
      choose.Case(layers::LessThan(i, Index(1)), [&] { layers::AssignTo(h * 2.0f, h); });
      choose.Default([&] { layers::AssignTo(layers::Tanh(h), h); });
    });
    return Variables{Loss(Matrix(h, "w"))};
  });
  builder->Train("if_else",
                 {x_and_n[0], {"mask", Tensor::FromValues<bool>({kRows, 1}, {true, false, true})}},
                 [&] {
                   const Variable x = Input();
                   layers::IfElse by_row(layers::Data("mask", {-1, 1}, DType::kBool));
                   by_row.IfTrue([&] { return Variables{layers::Tanh(by_row.Input(x))}; });
                   by_row.IfFalse([&] { return Variables{Matrix(by_row.Input(x), "w")}; });
                   return Variables{Loss(by_row.Outputs()[0])};
                 });
  builder->Train("static_rnn", {{"x", Numbers({kRows, 2, kWidth})}}, [&] {
    const Variable xs = layers::Data("x", {kRows, 2, kWidth}).StopGradient(false);
    const Variable first =
        layers::FillConstant({2, kWidth}, DType::kFloat32, 0.0).StopGradient(false);
    layers::StaticRnn rnn;
    rnn.Body([&] {
      const Variable x = rnn.StepInput(xs);
      const Variable before = rnn.Memory(first);
      const Variable h = layers::Tanh(Matrix(x, "u") + Matrix(before, "w"));
      rnn.UpdateMemory(before, h);
      rnn.StepOutput(h);
    });
    return Variables{Loss(rnn.Outputs()[0]), rnn.Outputs()[0]};
  });
}

void AddRagged(Builder* builder) {
  const FeedList ragged = {{"x", Ragged(Numbers({6, kWidth}), {2, 3, 1})},
                           {"first", Numbers({3, kWidth}, 2)}};
  builder->Train("dynamic_rnn", ragged, [&] {
    const Variable xs = RaggedInput();
    const Variable first = Input("first");
    layers::DynamicRnn rnn;
    rnn.Body([&] {
      const Variable x = rnn.StepInput(xs);
      const Variable before = rnn.Memory(first);
      const Variable all = rnn.StaticInput(first);
      const Variable h = layers::Tanh(Matrix(x, "u") + Matrix(before, "w") + all);
      rnn.UpdateMemory(before, h);
      rnn.StepOutput(h);
    });
    return Variables{Loss(rnn.Outputs()[0]), rnn.Outputs()[0]};
  });
  builder->Train("rank_table", ragged, [&] {
    const Variable xs = RaggedInput();
    const Variable table = layers::LodRankTable(xs);
    const Variable steps = layers::LodTensorToArray(xs, table);
    const Variable out = layers::CreateArray(DType::kFloat32);
    const Variable first = layers::ReorderByRank(Input("first"), table);
    const Variable h = layers::Assign(first);
    ForEach(layers::MaxSequenceLength(table), [&](const Variable& i) {
      const Variable x = layers::ArrayRead(steps, i);
      layers::ArrayWrite(x * 2.0f, i, out);
    });
    const Variable back = layers::ArrayToLodTensor(out, table);
    return Variables{Loss(back) + Loss(h), back};
  });
  builder->Train("shrink", ragged, [&] {
    const Variable table = layers::LodRankTable(RaggedInput());
    const Variable h = layers::ReorderByRank(Input("first"), table);
    const Variable less = layers::ShrinkByRank(h, table, Index(1));
    return Variables{Loss(less), less};
  });
  builder->Train("sequences", ragged, [&] {
    const Variable xs = RaggedInput();
    const Variable first = Input("first");
    const Variable pooled = layers::SequencePool(xs, "MAX");
    const Variable expanded = layers::SequenceExpandAs(first, xs);
    const Variable joined = layers::SequenceConcat({xs, expanded});
    const Variable soft = layers::SequenceSoftmax(
        layers::ReduceSum(layers::SequenceReverse(joined), {.dims = {1}, .keep_dim = true}));
    return Variables{Loss(soft * joined) + Loss(pooled), pooled};
  });
  builder->Train(
      "sequence_parts",
      {ragged[0],
       {"offset", Integers({3, 1}, {0, 1, 0})},
       {"length", Integers({3, 1}, {1, 2, 1})},
       {"ids", Ragged(Integers({4}, {1, 2, 0, 3}), {2, 1, 1})}},
      [&] {
        const Variable xs = RaggedInput();
        const Variable part =
            layers::SequenceSlice(xs, layers::Data("offset", {-1, 1}, DType::kInt64),
                                  layers::Data("length", {-1, 1}, DType::kInt64));
        const Variable ids = layers::Data("ids", {-1}, DType::kInt64, {.lod_level = 1});
        const Variable words = layers::Embedding(
            ids, {.rows = 5, .width = kWidth, .is_sparse = true, .param_attr = {.name = "t"}});
        return Variables{Loss(layers::SequencePool(part, "SUM")) + Loss(words)};
      });
}

void AddArrays(Builder* builder) {
  const FeedList x_and_n = {{"x", Numbers({kRows, kWidth})}, {"n", Integers({1}, {3})}};
  builder->Train("array", x_and_n, [&] {
    const Variable x = Input();
    const Variable n = layers::Data("n", {1}, DType::kInt64);
    const Variable array = layers::CreateArray(DType::kFloat32);
    layers::ArrayWrite(x, Index(0), array);
    ForEach(n, [&](const Variable& i) {
      const Variable next = layers::Tanh(layers::ArrayRead(array, i));
      layers::ArrayWrite(next, i + Index(1), array);
    });
    const Variable last = layers::ArrayRead(array, n);
    return Variables{Loss(last), layers::ArrayLength(array)};
  });
  builder->Train("array_to_tensor", {x_and_n[0]}, [&] {
    const Variable x = Input();
    const Variable array = layers::CreateArray(DType::kFloat32);
    layers::ArrayWrite(x, Index(0), array);
    layers::ArrayWrite(x * 3.0f, Index(1), array);
    const Variable joined = layers::ArrayToTensor(array, {.axis = 1});
    return Variables{Loss(joined), joined};
  });
  builder->Train("tensor_to_array", {{"x", Numbers({kRows, kWidth})}}, [&] {
    const Variable array =
        layers::TensorToArray(layers::Data("x", {kRows, kWidth}).StopGradient(false));
    return Variables{Loss(layers::ArrayRead(array, Index(1)))};
  });
  builder->Train(
      "masked_select",
      {x_and_n[0],
       {"mask", Tensor::FromValues<bool>({kRows, kWidth}, {1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1})}},
      [&] {
        const Variable mask = layers::Data("mask", {-1, kWidth}, DType::kBool);
        const Variable some = layers::MaskedSelect(Input(), mask);
        return Variables{Loss(some), layers::WhereIndex(mask)};
      });
}

void AddBeamSearch(Builder* builder) {
  constexpr int64_t kTokens = 4;
  Tensor ids = Integers({2, 1}, {0, 0});
  Tensor scores = Numbers({2, 1}, 3);
  for (Tensor* tensor : {&ids, &scores}) tensor->set_lod({{0, 1, 2}, {0, 1, 2}});
  const FeedList feeds = {{"table", Numbers({kTokens, kTokens}, 4)},
                          {"first", Numbers({2, kTokens}, 5)},
                          {"ids", ids},
                          {"scores", scores}};
  builder->Add("beam_search", feeds, [&] {
    const layers::BeamSearchOptions options = {.beam_size = 2, .end_id = 1};
    const Variable table = layers::Data("table", {kTokens, kTokens});
    const Variable step = Index(0);
    const Variable most = Index(3);
    const Variable states = layers::CreateArray(DType::kFloat32);
    const Variable all_ids = layers::CreateArray(DType::kInt64);
    const Variable all_scores = layers::CreateArray(DType::kFloat32);
    layers::ArrayWrite(layers::Data("first", {-1, kTokens}), step, states);
    layers::ArrayWrite(layers::Data("ids", {-1, 1}, DType::kInt64, {.lod_level = 2}), step,
                       all_ids);
    layers::ArrayWrite(layers::Data("scores", {-1, 1}, DType::kFloat32, {.lod_level = 2}), step,
                       all_scores);
    const Variable goes_on = layers::LessThan(step, most);
    While loop(goes_on);
    loop.Body([&] {
      const Variable last = layers::ArrayRead(all_ids, step);
      const Variable score = layers::ArrayRead(all_scores, step);
      const Variable before = layers::SequenceExpand(layers::ArrayRead(states, step), score);
      const Variable token = layers::Gather(table, layers::Reshape(last, {-1}));
      const Variable state = layers::Tanh(before + token) * 3.0f;
      const Variable next = layers::Log(layers::Softmax(layers::LoDReset(state, score)));
      const Variable total =
          layers::ElementwiseAdd(next, layers::Reshape(score, {-1}), {.axis = 0});
      const layers::BeamSelection selected = layers::BeamSearch(last, score, {}, total, options);
      layers::Increment(step);
      layers::ArrayWrite(state, step, states);
      layers::ArrayWrite(selected.ids, step, all_ids);
      layers::ArrayWrite(selected.scores, step, all_scores);
      layers::AssignTo(layers::LogicalAnd(layers::LessThan(step, most),
                                          layers::LogicalNot(layers::IsEmpty(selected.ids))),
                       goes_on);
    });
    const layers::BeamSentences found = layers::BeamSearchDecode(all_ids, all_scores, options);
    return Variables{found.ids, found.scores};
  });
}

void AddRandom(std::vector<Seed>* seeds) {
  constexpr uint64_t kPlain = 48;
  constexpr uint64_t kRaggedOnes = 24;
  for (uint64_t i = 0; i < kPlain + kRaggedOnes; ++i) {
    const bool is_ragged = i >= kPlain;
    const harness::Workload workload =
        is_ragged ? harness::RandomRaggedWorkload(DefaultOpRegistry(), i, {.layers = 3})
                  : harness::RandomWorkload(DefaultOpRegistry(), harness::AllCases(), i,
                                            {.ops = 4 + static_cast<int>(i % 4)});
    Executor executor(Place::Cpu());
    for (const auto& [name, tensor] : workload.initial) executor.scope().Assign(name, tensor);
    if (workload.startup != nullptr) executor.Run(*workload.startup);
    const auto run = std::ranges::find(workload.runs, size_t{0}, &harness::WorkloadRun::program);
    seeds->push_back({.name = StrCat(is_ragged ? "ragged_" : "random_", i),
                      .program = workload.programs[0],
                      .variables = VariablesOf(executor),
                      .feeds = run->feeds,
                      .fetches = run->fetches});
  }
}

// Programs that nobody has built: gradient ops without their forward half, or with what a file
// claims.
constexpr const char* kArrayGradient = R"(program {
  block 0 {
    var i int64 [1]
    var x float32 [2, 3]
    var g float32 [4, 3]
    var a lod_tensor_array float32 [2, 3]
    var ag lod_tensor_array float32 [2, 3]
    var j float32 [4, 3]
    var n int32 [2]
    var r float32 [2, 3]
    {Out: [i]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
    {Out: [x]} = fill_constant() {shape = longs [2, 3], dtype = 5, value = 1.0}
    {Out: [g]} = fill_constant() {shape = longs [4, 3], dtype = 5, value = 7.0}
    {Out: [a]} = write_to_array(X: [x], I: [i])
    {Out: [i]} = increment(X: [i]) {step = 1.0}
    {Out: [a]} = write_to_array(X: [x], I: [i])
    {"X@GRAD": [ag]} = tensor_array_to_tensor_grad(X: [a], "Out@GRAD": [g]) {axis = 0, use_stack = false}
    {Out: [r]} = read_from_array(X: [ag], I: [i])
  }
})";
constexpr const char* kMadeRows = R"(program {
  block 0 {
    var x float32 [5]
    var s float32 [5]
    var mask bool [5]
    var y float32 [-1]
    var z float32 [-1]
    {Out: [x]} = fill_constant() {shape = longs [5], dtype = 5, value = 2.0}
    {Out: [s]} = fill_constant() {shape = longs [5], dtype = 5, value = 7.0}
    {Out: [mask]} = fill_constant() {shape = longs [5], dtype = 0, value = 1.0}
    {Y: [y]} = masked_select(X: [s], Mask: [mask]) {op_role = 1}
    {Out: [z]} = relu(X: [y])
  }
})";
constexpr const char* kBranchGradient = R"(program {
  block 0 {
    var x float32 [2, 3]
    var c bool [1]
    var y float32 [2, 3]
    var scopes step_scopes float32 []
    var "y@GRAD" float32 [2, 3]
    var "x@GRAD" float32 [2, 3]
    {Out: [x]} = fill_constant() {shape = longs [2, 3], dtype = 5, value = 1.0}
    {Out: [c]} = fill_constant() {shape = longs [1], dtype = 0, value = 0.0}
    {Out: [y]} = fill_constant() {shape = longs [2, 3], dtype = 5, value = 3.0}
    {Out: [y], Scope: [scopes]} = conditional_block(Cond: [c], Input: [x]) {sub_block = block 1, is_scalar_condition = true}
    {Out: ["y@GRAD"]} = fill_constant() {shape = longs [2, 3], dtype = 5, value = 1.0, op_role = 1}
    {"Input@GRAD": ["x@GRAD"]} = conditional_block_grad(Cond: [c], Input: [x], "Out@GRAD": ["y@GRAD"], Scope: [scopes]) {sub_block = block 2, is_scalar_condition = true, op_role = 1}
  }
  block 1 parent=0 {
    {Out: [y]} = relu(X: [x])
  }
  block 2 parent=0 forward=1 {
    {"X@GRAD": ["x@GRAD"]} = relu_grad(Out: [y], "Out@GRAD": ["y@GRAD"]) {op_role = 1}
  }
})";
constexpr const char* kRowsInBody = R"(program {
  block 0 {
    var v float32 [5, 4]
    var x float32 [5, 4] lod=1
    var rt lod_rank_table int64 [-1, 3]
    var len int64 [1]
    var step int64 [1]
    var cond bool [1]
    var arr lod_tensor_array float32 [-1, 4]
    var outarr lod_tensor_array float32 [-1, 4]
    var out float32 [-1, 4] lod=1
    var scopes step_scopes float32 []
    {Out: [v]} = gaussian_random() {shape = longs [5, 4], dtype = 5, seed = 3}
    {Out: [x]} = lod_reset(X: [v]) {target_lod = ints [0, 3, 5]}
    {Out: [rt]} = lod_rank_table(X: [x]) {level = 0}
    {Out: [len]} = max_sequence_len(RankTable: [rt])
    {Out: [step]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
    {Out: [cond]} = less_than(X: [step], Y: [len])
    {Out: [arr]} = lod_tensor_to_array(X: [x], RankTable: [rt])
    {Out: [step, cond, outarr], StepScopes: [scopes]} = while(X: [arr, step, len], Condition: [cond]) {sub_block = block 1}
    {Out: [out]} = array_to_lod_tensor(X: [outarr], RankTable: [rt])
  }
  block 1 parent=0 {
    var xs float32 [-1, 4]
    var m float32 [4]
    var o float32 [-1, 4]
    {Out: [xs]} = read_from_array(X: [arr], I: [step])
    {Out: [m]} = reduce_sum(X: [xs]) {dim = ints [0], keep_dim = false, reduce_all = false}
    {Out: [o]} = elementwise_sub(X: [xs], Y: [m]) {axis = -1}
    {Out: [outarr]} = write_to_array(X: [o], I: [step])
    {Out: [step]} = increment(X: [step]) {step = 1.0}
    {Out: [cond]} = less_than(X: [step], Y: [len])
  }
})";

// Fetches what no op reads.
FetchList ResultsOf(const Program& program) {
  FetchList results;
  std::vector<std::string> read;
  for (const auto& op : program.root()->ops())
    std::ranges::copy(op->InputNames(), std::back_inserter(read));
  for (const auto& op : program.root()->ops()) {
    for (const std::string& name : op->OutputNames()) {
      const Var* var = program.root()->FindVar(name);
      const bool is_tensor = var != nullptr && var->kind == VarKind::kLoDTensor;
      if (is_tensor && std::ranges::count(read, name) == 0) results.push_back(name);
    }
  }
  return results;
}

void AddTexts(std::vector<Seed>* seeds) {
  const std::pair<const char*, const char*> texts[] = {{"array_gradient", kArrayGradient},
                                                       {"made_rows", kMadeRows},
                                                       {"branch_gradient", kBranchGradient},
                                                       {"rows_in_body", kRowsInBody}};
  for (const auto& [name, text] : texts) {
    Seed seed{.name = name, .program = ParseProgramText(text)};
    seed.fetches = ResultsOf(*seed.program);
    seeds->push_back(std::move(seed));
  }
}

void AddFile(const std::string& folder, std::vector<Seed>* seeds) {
  const TensorMap params = ReadNpz(folder + "/params.npz");
  const TensorMap feeds = ReadNpz(folder + "/feed.npz");
  Seed seed{.name = folder.substr(folder.rfind('/') + 1),
            .program = ParseProgram(ReadFile(folder + "/main.pb")),
            .variables = {params.begin(), params.end()},
            .feeds = {feeds.begin(), feeds.end()},
            .fetches = {}};
  seed.fetches = ResultsOf(*seed.program);
  seeds->push_back(std::move(seed));
}

}  // namespace

std::vector<Seed> SeedPrograms(const std::vector<std::string>& files) {
  std::vector<Seed> seeds;
  Builder builder(&seeds);
  AddLoops(&builder);
  AddRagged(&builder);
  AddArrays(&builder);
  AddBeamSearch(&builder);
  AddTexts(&seeds);
  AddRandom(&seeds);
  for (const std::string& folder : files) AddFile(folder, &seeds);
  return seeds;
}

}  // namespace skiff::fuzz
