#include "tests/fuzz/seed_programs.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <tuple>
#include <utility>

#include "framework/autodiff/append_backward.h"
#include "framework/builder/activation.h"
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
#include "framework/builder/tensor_array_layers.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/executor/executor.h"
#include "framework/io/file.h"
#include "framework/io/npz.h"
#include "framework/ir/codec.h"
#include "framework/ir/text.h"
#include "tests/harness/all_cases.h"
#include "tests/harness/beam_search_loop.h"
#include "tests/harness/forged_programs.h"
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
  return layers::Fc(x, width, {.param_attr = {.name = name}, .bias_attr = false});
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
  builder->Train("deep_nest", x_and_n, [&] {
    const Variable h = layers::Assign(Input());
    ForEach(count(), [&](const Variable& i) {
      layers::Switch choose;
      choose.Case(layers::LessThan(Index(0), i), [&] {
        ForEach(i, [&](const Variable&) { layers::AssignTo(layers::Tanh(Matrix(h, "w")), h); });
      });
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
  const auto train_steps = [&](const std::string& name, int64_t rows,
                               const std::function<Variable(const Variable&)>& output) {
    const FeedList feeds = {
        x_and_n[0], {"other", Numbers({rows, kWidth}, 2)}, {"order", Integers({3, 1}, {1, 0, 1})}};
    builder->Train(name, feeds, [&] {
      const Variable array = layers::CreateArray(DType::kFloat32);
      layers::ArrayWrite(Input(), Index(0), array);
      layers::ArrayWrite(Input("other"), Index(1), array);
      const Variable order = layers::Data("order", {3, 1}, DType::kInt64);
      layers::StaticRnn rnn;
      rnn.Body([&] {
        const Variable x = layers::ArrayRead(array, rnn.StepInput(order));
        rnn.StepOutput(output(Matrix(x, "w")));
      });
      return Variables{Loss(rnn.Outputs()[0]), rnn.Outputs()[0]};
    });
  };
  train_steps("elements_in_steps", 1,
              [](const Variable& x) { return layers::ReduceSum(x, {.dims = {0}}); });
  // The parts of the output must have as many rows. With another feed they have not.
  train_steps("rows_in_steps", kRows, [](const Variable& x) { return x; });
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
    const layers::BeamSentences found =
        harness::BeamSearchLoop({.tokens = kTokens, .most = 3, .beam_size = 2, .end_id = 1});
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

// Dtypes that few ops take.
constexpr const char* kNarrow = R"(program {
  block 0 {
    var a int16 [-1, 4]
    var b int8 [-1, 4]
    var c uint8 [-1, 4]
    var flag bool [-1, 4]
    var both int16 [-1, 4]
    var some int16 [-1, 2]
    var wide float32 [-1, 4]
    var not bool [-1, 4]
    var chosen float32 [-1, 4]
    var b2 int16 [-1, 4]
    var c2 bool [-1, 4]
    var h float16 [-1, 4]
    {Out: [b2]} = cast(X: [b]) {in_dtype = 21, out_dtype = 1}
    {Out: [c2]} = cast(X: [c]) {in_dtype = 20, out_dtype = 0}
    {Out: [both]} = concat(X: [a, b2]) {axis = 0}
    {Out: [some]} = slice(Input: [both]) {axes = ints [1], starts = ints [1], ends = ints [3]}
    {Out: [wide]} = cast(X: [a]) {in_dtype = 1, out_dtype = 5}
    {Out: [h]} = cast(X: [wide]) {in_dtype = 5, out_dtype = 4}
    {Out: [not]} = logical_xor(X: [flag], Y: [c2])
    {Out: [chosen]} = where(Condition: [flag], X: [wide], Y: [wide])
  }
})";
// Inputs that give attributes, and attributes of another type than the op's.
constexpr const char* kComputedShapes = R"(program {
  block 0 {
    var x float32 [-1, 4]
    var dims int32 [2]
    var rows int32 [1]
    var four int32 [1]
    var flat float32 [-1]
    var zeros float32 [-1, 4]
    var sum float32 [-1, 1]
    var twice float32 [-1, 4]
    var size int32 [1]
    {Out: [dims]} = shape(Input: [x])
    {Out: [rows]} = slice(Input: [dims]) {axes = ints [0], starts = ints [0], ends = ints [1]}
    {Out: [four]} = fill_constant() {shape = longs [1], dtype = 2, value = 4.0}
    {Out: [size]} = elementwise_mul(X: [rows], Y: [four]) {axis = -1}
    {Out: [flat]} = reshape2(X: [x], ShapeTensor: [size]) {shape = ints [-1]}
    {Out: [zeros]} = fill_constant(ShapeTensorList: [rows, four]) {shape = longs [], dtype = 5, value = 1}
    {Out: [sum]} = reduce_sum(X: [zeros]) {dim = ints [1], keep_dim = 1, reduce_all = 0}
    {Out: [twice]} = tile(X: [x], RepeatTimes: [dims]) {repeat_times = ints []}
  }
})";

// A loop overwrites a variable of the scope that the program itself makes.
constexpr const char* kPersistableInLoop = R"(program {
  block 0 {
    var kept float32 [4, 4] persistable
    var x float32 [-1, 4]
    var h float32 [-1, 4]
    var i int64 [1]
    var n int64 [1]
    var cond bool [1]
    var both float32 [-1, 4]
    var s step_scopes float32 []
    {Out: [kept]} = fill_constant() {shape = longs [4, 4], dtype = 5, value = 0.5}
    {Out: [h]} = scale(X: [x]) {scale = 2.0}
    {Out: [i]} = fill_constant() {shape = longs [1], dtype = 3, value = 0.0}
    {Out: [cond]} = less_than(X: [i], Y: [n])
    {Out: [i, cond, h], StepScopes: [s]} = while(X: [i, n, h, kept], Condition: [cond]) {sub_block = block 1}
    {Out: [both]} = mul(X: [h], Y: [kept]) {x_num_col_dims = 1, y_num_col_dims = 1}
  }
  block 1 parent=0 {
    var next float32 [4, 4]
    {Out: [h]} = mul(X: [h], Y: [kept]) {x_num_col_dims = 1, y_num_col_dims = 1}
    {Out: [next]} = tanh(X: [kept])
    {Out: [kept]} = assign(X: [next])
    {Out: [i]} = increment(X: [i]) {step = 1.0}
    {Out: [cond]} = less_than(X: [i], Y: [n])
  }
})";
// The backward half of a program in two parts.
constexpr const char* kFedGradient = R"(program {
  block 0 {
    var feed feed_minibatch float32 [] persistable
    var x float32 [-1, 4]
    var y float32 [-1, 4]
    var "y@GRAD" float32 [-1, 4]
    var "x@GRAD" float32 [-1, 4]
    var w float32 [-1, 4]
    {Out: [y]} = feed(X: [feed]) {col = 0}
    {Out: ["y@GRAD"]} = feed(X: [feed]) {col = 1}
    {"X@GRAD": ["x@GRAD"]} = tanh_grad(Out: [y], "Out@GRAD": ["y@GRAD"])
    {Out: [w]} = elementwise_mul(X: ["x@GRAD"], Y: [x]) {axis = -1}
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
  const Tensor flags =
      Tensor::FromValues<bool>({kRows, kWidth}, {1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1});
  const Tensor x = Numbers({kRows, kWidth});
  const FeedList narrow = {{"a", harness::Cast(x, DType::kInt16)},
                           {"b", harness::Cast(x, DType::kInt8)},
                           {"c", harness::Cast(flags, DType::kUint8)},
                           {"flag", flags}};
  const FeedList given = {{"given", Numbers({kRows})}};
  const FeedList ragged = {{"x", Ragged(Numbers({6, 2}), {2, 3, 1})}};
  const std::string step_ops =
      "{Out: [m]} = reduce_sum(X: [xs]) {dim = ints [0], keep_dim = false, reduce_all = false}";
  const std::tuple<const char*, std::string, FeedList> texts[] = {
      {"narrow", kNarrow, narrow},
      {"computed_shapes", kComputedShapes, {{"x", x}}},
      {"persistable_in_loop", kPersistableInLoop, {{"x", x}, {"n", Integers({1}, {3})}}},
      {"fed_gradient", kFedGradient, {{"x", x}, {"y", x}, {"y@GRAD", x}}},
      {"shrink_gradient", harness::ShrinkGrad("[1, 2]"), {}},
      {"join_gradient", harness::JoinGrad("[1, 3, 1]"), {}},
      {"branch_gradient", harness::BlockGrad("conditional", "[2]"), {}},
      {"loop_gradient", harness::BlockGrad("while", "[2]"), {}},
      {"recurrent_gradient", harness::RecurrentGrad("og"), {}},
      {"made_rows", harness::MadeRows("[3]", "[3]"), given},
      {"rows_in_body", harness::WithStep(step_ops), ragged}};
  for (const auto& [name, text, feeds] : texts) {
    Seed seed{.name = name,
              .program = ParseProgramText(text),
              .variables = {},
              .feeds = feeds,
              .fetches = {}};
    seed.fetches = ResultsOf(*seed.program);
    seeds->push_back(std::move(seed));
  }
}

void AddFile(const std::string& file, std::vector<Seed>* seeds) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  Executor executor(Place::Cpu());
  if (exists(folder / "startup.pb")) {
    executor.Run(*ParseProgram(ReadFile(folder / "startup.pb")));
  }
  for (const auto& [name, tensor] : ReadNpz(folder / "params.npz")) {
    executor.scope().Assign(name, tensor);
  }
  Seed seed{.name = file,
            .program = ParseProgram(ReadFile(file)),
            .variables = VariablesOf(executor),
            .feeds = {},
            .fetches = {}};
  // A startup program has none.
  for (const auto& [name, tensor] : ReadNpz(folder / "feed.npz")) {
    if (seed.program->root()->FindVar(name) != nullptr) seed.feeds.emplace_back(name, tensor);
  }
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
  for (const std::string& file : files) AddFile(file, &seeds);
  return seeds;
}

}  // namespace skiff::fuzz
