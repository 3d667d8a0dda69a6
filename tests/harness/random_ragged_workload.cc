#include "tests/harness/random_ragged_workload.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <random>
#include <source_location>
#include <string>
#include <utility>

#include "framework/builder/activation.h"
#include "framework/builder/data.h"
#include "framework/builder/dynamic_rnn.h"
#include "framework/builder/elementwise.h"
#include "framework/builder/initializer.h"
#include "framework/builder/layer_call.h"
#include "framework/builder/loss.h"
#include "framework/builder/math.h"
#include "framework/builder/nn.h"
#include "framework/builder/optimizer/adam.h"
#include "framework/builder/optimizer/momentum.h"
#include "framework/builder/optimizer/rmsprop.h"
#include "framework/builder/optimizer/sgd.h"
#include "framework/builder/program_guard.h"
#include "framework/builder/recurrent.h"
#include "framework/builder/sequence.h"
#include "framework/builder/tensor_layers.h"
#include "framework/builder/variable_operators.h"
#include "framework/precision/half_rewrite.h"
#include "framework/tensor/ragged.h"

namespace skiff::harness {
namespace {

using Lengths = std::vector<int64_t>;

constexpr int64_t kWords = 15;
constexpr int64_t kClasses = 3;
constexpr const char* kPoolings[] = {"SUM", "AVERAGE", "SQRT", "MAX", "FIRST", "LAST"};

// Rows of ragged sequences, one sequence for each label.
struct Rows {
  Variable variable;  // [rows, width]
  int group = 0;      // those of a group have the same LoD
  bool read = false;
};

// A layer of all that a row has.
template <typename Inputs>
Variable Dense(const Inputs& x, int64_t size, layers::FcOptions options = {}) {
  options.num_flatten_dims = 1;
  return layers::Fc(x, size, options);
}

class RaggedGenerator {
 public:
  RaggedGenerator(const OpRegistry& registry, uint64_t seed, const RandomRaggedOptions& options)
      : registry_(registry),
        options_(options),
        random_(seed),
        main_(std::make_shared<Program>()),
        startup_(std::make_shared<Program>()) {
    workload_.name = StrCat("random_ragged_", seed);
    main_->seed = startup_->seed = seed + 1;
    depends_on_data_ = Chance(0.3);
  }

  Workload Make() {
    const ProgramGuard guard(main_.get(), startup_.get());
    AddFeeds();
    for (int made = 0; made < options_.layers; ++made) AddLayer();
    Train();
    workload_.programs.insert(workload_.programs.begin(), main_);
    workload_.startup = startup_;
    AddRuns();
    return std::move(workload_);
  }

 private:
  int64_t Below(int64_t limit) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(limit));
  }
  bool Chance(double probability) {
    return static_cast<double>(random_() >> 11) * 0x1p-53 < probability;
  }
  int64_t Width() { return 2 + Below(4); }
  std::string Activation() {
    constexpr const char* kActivations[] = {"tanh", "sigmoid", "relu", "softsign"};
    return kActivations[Below(std::ssize(kActivations))];
  }

  void AddRows(const Variable& variable, int group) { rows_.push_back({variable, group}); }

  // Returns some rows, newer ones with a higher probability, which makes deep programs. `leads_on`:
  // the loss depends on what is made of them.
  Rows& PickRows(bool leads_on = true) {
    const auto count = static_cast<int64_t>(rows_.size());
    Rows& picked = rows_[static_cast<size_t>(std::max(Below(count), Below(count)))];
    picked.read = picked.read || leads_on;
    return picked;
  }

  // ---- feeds

  void AddFeeds() {
    const Variable ids = layers::Data("ids", {-1}, DType::kInt64, {.lod_level = 1});
    columns_ = layers::Data("columns", {-1, 1}, DType::kInt64, {.lod_level = 1});
    label_ = layers::Data("label", {-1, 1}, DType::kInt64);
    AddRows(layers::Embedding(ids, {.rows = kWords, .width = Width(), .is_sparse = Chance(0.3)}),
            NewGroup());
    AddRows(LookupColumns(columns_), NewGroup());
    AddNested();
    if (Chance(0.5)) pooled_.push_back(PooledWindows(columns_));
    if (depends_on_data_) AddWhatDependsOnData(ids);
  }

  // A feed with two levels. The sequences of the lower one become rows.
  void AddNested() {
    nested_ = layers::Data("nested", {-1}, DType::kInt64, {.lod_level = 2});
    const Variable embedded = layers::Embedding(nested_, {.rows = kWords, .width = Width()});
    nested_rows_ = layers::SequencePool(Dense(embedded, Width(), {.act = Activation()}),
                                        kPoolings[Below(std::ssize(kPoolings))]);
    nested_group_ = NewGroup();
    AddRows(nested_rows_, nested_group_);
  }

  // Values whose shapes or LoDs only the data tell, or the shapes of dense feeds.
  void AddWhatDependsOnData(const Variable& ids) {
    const Variable first = layers::Data("first", {-1, 1}, DType::kInt64);
    const Variable length = layers::Data("length", {-1, 1}, DType::kInt64);
    const Variable image = layers::Data("image", {-1, 1, 3, 4});
    const Variable embedded = layers::Embedding(ids, {.rows = kWords, .width = 3});
    const Variable sliced = layers::SequenceSlice(embedded, first, length);
    const Variable erased = LookupColumns(layers::SequenceErase(columns_, {1, 4}));
    const layers::PaddedSequences padded =
        layers::SequencePad(rows_[0].variable, layers::FillConstant({1}, DType::kFloat32, 0.5));
    rows_[0].read = true;
    const Variable mask = layers::SequenceMask(padded.length, {.dtype = DType::kFloat32});
    const Variable unpadded = layers::SequenceUnpad(
        layers::ElementwiseMul(padded.padded, mask, {.axis = 0}), padded.length);
    const Variable windows = layers::Im2Sequence(image, {.kernels = {2, 2}});
    for (const Variable& x : {sliced, erased, unpadded, windows}) {
      pooled_.push_back(layers::SequencePool(x, kPoolings[Below(std::ssize(kPoolings))]));
    }
  }

  int NewGroup() { return groups_++; }

  Variable Parameter(const LayerCall& call, const std::vector<int64_t>& dims) {
    return call.CreateParameter({}, "w", dims, DType::kFloat32, initializer::Xavier());
  }

  LayerCall Call(const std::string& type) const {
    return LayerCall(type, "", std::source_location::current());
  }

  // The older lookup, on ids [rows, 1].
  Variable LookupColumns(const Variable& columns) {
    const LayerCall call = Call("lookup_table");
    Op op("lookup_table");
    op.SetInput("Ids", {call.CheckedName(columns)});
    op.SetInput("W", {Parameter(call, {kWords, Width()}).name()});
    op.SetAttr("is_sparse", Chance(0.3)).SetAttr("padding_idx", int64_t{Chance(0.3) ? 2 : -1});
    return call.AppendFor(std::move(op));
  }

  // The embeddings of each id and those after it, pooled.
  Variable PooledWindows(const Variable& columns) {
    const LayerCall call = Call("sequence_enumerate");
    Op op("sequence_enumerate");
    op.SetInput("X", {call.CheckedName(columns)}).SetAttr("win_size", 2).SetAttr("pad_value", 0);
    const Variable windows = call.AppendFor(std::move(op));
    const Variable embedded = layers::Embedding(windows, {.rows = kWords, .width = 2});
    return Dense(layers::SequencePool(embedded, "SUM"), Width(), {.act = Activation()});
  }

  // ---- layers

  void AddLayer() {
    using Add = void (RaggedGenerator::*)();
    static constexpr Add kLayers[] = {
        &RaggedGenerator::AddRowWise,   &RaggedGenerator::AddRowWise,
        &RaggedGenerator::AddPair,      &RaggedGenerator::AddConvolution,
        &RaggedGenerator::AddRowConv,   &RaggedGenerator::AddReverse,
        &RaggedGenerator::AddAttention, &RaggedGenerator::AddGru,
        &RaggedGenerator::AddLstm,      &RaggedGenerator::AddSplit,
        &RaggedGenerator::AddPool,      &RaggedGenerator::AddPool,
        &RaggedGenerator::AddExpand,    &RaggedGenerator::AddState,
        &RaggedGenerator::AddJoin,      &RaggedGenerator::AddRepeats,
        &RaggedGenerator::AddScatter,   &RaggedGenerator::AddLstmp,
        &RaggedGenerator::AddOnPooled,  &RaggedGenerator::AddLoop,
        &RaggedGenerator::AddLoop};
    (this->*kLayers[Below(std::ssize(kLayers))])();
  }

  void AddRowWise() {
    const auto [x, group, read] = PickRows();
    switch (Below(4)) {
      case 0:
        return AddRows(Dense(x, Width(), {.act = Activation()}), group);
      case 1:
        return AddRows(layers::Scale(x, {.scale = -0.5f, .bias = 0.25f}), group);
      case 2:
        return AddRows(layers::Dropout(x, 0.3f), group);
      default:
        return AddRows(Call("activation").Activate(x, Activation()), group);
    }
  }

  void AddPair() {
    const auto [x, group, read] = PickRows();
    Variable y = Dense(x, x.dims()[1], {.act = "tanh"});
    for (Rows& other : rows_) {
      const bool fits = other.group == group && other.variable.dims() == x.dims();
      if (!fits || !Chance(0.5)) continue;
      other.read = true;
      y = other.variable;
    }
    AddRows(Chance(0.5) ? layers::ElementwiseAdd(x, y) : layers::ElementwiseMul(x, y), group);
  }

  void AddConvolution() {
    const auto [x, group, read] = PickRows();
    const int64_t context = 1 + Below(4);
    AddRows(layers::SequenceConv(x, {.filters = Width(),
                                     .context = context,
                                     .start = -Below(context + 1),
                                     .act = Activation()}),
            group);
  }

  void AddRowConv() {
    const auto [x, group, read] = PickRows();
    const LayerCall call = Call("row_conv");
    Op op("row_conv");
    op.SetInput("X", {call.CheckedName(x)});
    op.SetInput("Filter", {Parameter(call, {1 + Below(3), x.dims()[1]}).name()});
    AddRows(call.AppendFor(std::move(op)), group);
  }

  void AddReverse() {
    const auto [x, group, read] = PickRows();
    const LayerCall call = Call("sequence_reverse");
    Op op("sequence_reverse");
    op.SetInput("X", {call.CheckedName(x)});
    AddRows(call.AppendFor(std::move(op), "Y"), group);
  }

  // Weighs each row by a softmax over its sequence.
  void AddAttention() {
    const auto [x, group, read] = PickRows();
    const LayerCall call = Call("sequence_softmax");
    Op op("sequence_softmax");
    // A bias would have no gradient but rounding errors: a softmax doesn't change with it.
    op.SetInput("X", {call.CheckedName(Dense(x, 1, {.bias_attr = false}))});
    AddRows(layers::ElementwiseMul(x, call.AppendFor(std::move(op)), {.axis = 0}), group);
  }

  void AddGru() {
    const auto [x, group, read] = PickRows();
    const int64_t size = Width();
    layers::DynamicGruOptions gru{
        .size = size, .is_reverse = Chance(0.5), .origin_mode = Chance(0.5)};
    if (!pooled_.empty() && Chance(0.4)) gru.initial = Dense(pooled_.back(), size);
    AddRows(layers::DynamicGru(Dense(x, 3 * size), gru), group);
  }

  void AddLstm() {
    const auto [x, group, read] = PickRows();
    const int64_t size = Width();
    const layers::LstmStates states = layers::DynamicLstm(
        Dense(x, 4 * size),
        {.size = size, .use_peepholes = Chance(0.5), .is_reverse = Chance(0.5)});
    AddRows(states.hidden, group);
    if (Chance(0.3)) AddRows(states.cell, group);
  }

  void AddLstmp() {
    const auto [x, group, read] = PickRows();
    const int64_t size = Width();
    const layers::LstmpStates states =
        layers::DynamicLstmp(Dense(x, 4 * size), {.size = size,
                                                  .proj_size = Width(),
                                                  .use_peepholes = Chance(0.5),
                                                  .is_reverse = Chance(0.5)});
    AddRows(states.projection, group);
    if (Chance(0.3)) AddRows(states.cell, group);
  }

  // Joins the sequences of two feeds, or of one.
  void AddJoin() {
    const auto [x, group, read] = PickRows();
    const Variable y = Dense(PickRows().variable, x.dims()[1]);
    AddRows(layers::SequenceConcat({x, y}), NewGroup());
  }

  // Repeats the sequences as often as `nested` has some, and pools the repeats; or pools the
  // sequences and repeats that. Either gives a row for each that the LoD wants.
  void AddRepeats() {
    const Variable x = PickRows().variable;
    if (Chance(0.5)) {
      const Variable repeated = layers::SequenceExpand(x, nested_, /*ref_level=*/0);
      AddRows(layers::LoDReset(layers::SequencePool(repeated, "SUM"), nested_rows_), nested_group_);
      return;
    }
    const auto [y, group, is_read] = PickRows(/*leads_on=*/false);
    const Variable repeated = layers::SequenceExpand(layers::SequencePool(x, "MAX"), y);
    AddRows(layers::LoDReset(layers::Scale(repeated, {.scale = 0.5f}), y), group);
  }

  // Adds a number of each row to the elements that the columns name.
  void AddScatter() {
    if (pooled_.empty()) return AddPool();
    const Variable x = Dense(pooled_.back(), kWords);
    const Variable updates = Dense(layers::Embedding(columns_, {.rows = kWords, .width = 2}), 1);
    pooled_.push_back(Dense(layers::SequenceScatter(x, columns_, updates), Width()));
  }

  // Makes twice as many rows of half the width.
  void AddSplit() {
    const auto [x, group, read] = PickRows();
    const Variable even = Dense(x, 4, {.act = "tanh"});
    const LayerCall call = Call("sequence_reshape");
    Op op("sequence_reshape");
    op.SetInput("X", {call.CheckedName(even)}).SetAttr("new_dim", 2);
    AddRows(call.AppendFor(std::move(op)), NewGroup());
  }

  void AddPool() {
    const Rows& rows = PickRows();
    const float pad_value = Chance(0.5) ? 0.5f : 0.0f;
    pooled_.push_back(
        layers::SequencePool(rows.variable, kPoolings[Below(std::ssize(kPoolings))], pad_value));
  }

  void AddExpand() {
    if (pooled_.empty() || registry_.Find("sequence_expand_as") == nullptr) return AddPool();
    const auto [y, group, read] = PickRows(/*leads_on=*/false);
    const LayerCall call = Call("sequence_expand_as");
    Op op("sequence_expand_as");
    op.SetInput("X", {call.CheckedName(pooled_.back())}).SetInput("Y", {call.CheckedName(y)});
    AddRows(call.AppendFor(std::move(op)), group);
  }

  // A recurrent layer that is written step by step, with one or two inputs and memories. It may
  // look at all rows of other sequences, and at a row for each sequence.
  void AddLoop() {
    const auto [x, group, read] = PickRows();
    Variable other;
    for (Rows& rows : rows_) {
      if (rows.group != group || !Chance(0.3)) continue;
      rows.read = true;
      other = rows.variable;
    }
    Variable pooled;
    if (!pooled_.empty() && Chance(0.5)) pooled = pooled_.back();
    Variable notes;
    if (Chance(0.4)) notes = PickRows().variable;
    const int64_t size = Width();
    layers::DynamicRnn rnn;
    rnn.Body([&, &x = x] {
      std::vector<Variable> seen = {rnn.StepInput(x)};
      if (other.defined()) seen.push_back(rnn.StepInput(other));
      if (pooled.defined()) seen.push_back(rnn.StaticInput(pooled));
      const Variable before =
          pooled.defined() && Chance(0.5) ? rnn.Memory(pooled) : rnn.Memory({size}, 0.25f);
      seen.push_back(before);
      if (notes.defined()) {
        const Variable rows = rnn.StaticInput(notes);
        const Variable query = layers::SequenceExpandAs(Dense(before, rows.dims()[1]), rows);
        seen.push_back(layers::SequencePool(rows * layers::Sigmoid(query), "SUM"));
      }
      const Variable joined = Dense(layers::Concat(seen, 1), before.dims()[1], {.act = "tanh"});
      const Variable state = Chance(0.3) ? layers::Dropout(joined, 0.2f) : joined;
      rnn.UpdateMemory(before, state);
      rnn.StepOutput(state);
      if (Chance(0.3)) rnn.StepOutput(Dense(state, 3, {.act = "sigmoid"}));
    });
    for (const Variable& output : rnn.Outputs()) AddRows(output, group);
  }

  // state = state + the largest value of each column: a variable of the scope that depends on all
  // rows.
  void AddState() {
    const Rows& rows = PickRows(/*leads_on=*/false);
    const int64_t width = rows.variable.dims()[1];
    const Variable state = CreatePersistable(StrCat("state_", states_++), {width}, DType::kFloat32,
                                             0.5, std::source_location::current());
    Variable largest = layers::ReduceMax(rows.variable, {.dims = {0}});
    largest.StopGradient();
    const LayerCall call = Call("elementwise_add");
    Op op("elementwise_add");
    op.SetInput("X", {call.CheckedName(state)}).SetInput("Y", {largest.name()});
    op.SetOutput("Out", {state.name()});
    call.Append(std::move(op));
  }

  void AddOnPooled() {
    if (pooled_.empty()) return AddPool();
    const Variable x = pooled_[static_cast<size_t>(Below(static_cast<int64_t>(pooled_.size())))];
    pooled_.push_back(Dense(x, Width(), {.act = Activation()}));
    if (Chance(0.4)) pooled_.push_back(layers::Concat({x, pooled_.back()}, 1));
  }

  // ---- training

  void Train() {
    for (Rows& rows : rows_) {
      if (!rows.read) {
        pooled_.push_back(
            layers::SequencePool(rows.variable, kPoolings[Below(std::ssize(kPoolings))]));
      }
    }
    const Variable scores = Dense(pooled_, kClasses);
    const Variable loss = layers::Mean(layers::SoftmaxWithCrossEntropy(scores, label_));
    if (IsHalf(options_.precision.dtype)) {
      RewriteToHalf(registry_, options_.precision, {loss.name()}, main_.get(), startup_.get());
    }
    // Cloned before Minimize appends backward and optimizer ops, which evaluation must not run.
    workload_.programs.push_back(main_->CloneForTest());
    const GradientClip clip = Chance(0.3) ? ClipByGlobalNorm(1.0f) : GradientClip{};
    switch (Below(4)) {
      case 0:
        optimizer::Sgd({.learning_rate = 0.05, .clip = clip}).Minimize(loss);
        break;
      case 1:
        optimizer::Momentum({.learning_rate = 0.02, .clip = clip}).Minimize(loss);
        break;
      case 2:
        // With a small epsilon, a gradient that is only rounding would move its parameter.
        optimizer::RmsProp({.learning_rate = 0.01, .epsilon = 1e-3f, .clip = clip}).Minimize(loss);
        break;
      default:
        optimizer::Adam({.learning_rate = 0.01, .epsilon = 1e-3f, .clip = clip}).Minimize(loss);
    }
  }

  // ---- runs

  Lengths RandomLengths(int64_t sequences, int64_t longest) {
    Lengths lengths;
    for (int64_t i = 0; i < sequences; ++i) lengths.push_back(1 + Below(longest));
    return lengths;
  }

  struct BatchLengths {
    Lengths ids, columns;
    LevelLengths nested;
  };

  BatchLengths RandomBatch(int64_t sequences, int64_t longest) {
    const Lengths inner = RandomLengths(sequences, 3);
    const int64_t inner_count = std::accumulate(inner.begin(), inner.end(), int64_t{0});
    return {.ids = RandomLengths(sequences, longest),
            .columns = RandomLengths(sequences, longest),
            .nested = {inner, RandomLengths(inner_count, 1 + longest / 3)}};
  }

  // Long, short and long batches, and what is special about lengths.
  std::vector<BatchLengths> Batches() {
    std::vector<BatchLengths> batches = {RandomBatch(9, 12), RandomBatch(2, 3), RandomBatch(7, 14)};
    batches.push_back({Lengths(5, 4), Lengths(5, 4), {Lengths(5, 1), Lengths(5, 4)}});
    batches.push_back(RandomBatch(1, 20));
    batches.push_back({{0, 3, 0, 2}, {1, 0, 0, 6}, {{0, 2, 0, 1}, {0, 3, 0}}});
    batches.push_back(RandomBatch(3, 5));
    batches.push_back(batches[0]);
    // The counts of the first batch, distributed in another way.
    BatchLengths& last = batches.back();
    for (Lengths* lengths : {&last.ids, &last.columns, &last.nested[0], &last.nested[1]}) {
      std::ranges::reverse(*lengths);
    }
    return batches;
  }

  // Ids for the lengths of the lowest level.
  Tensor Ids(const LevelLengths& lengths, bool as_column) {
    const Lengths& lowest = lengths.back();
    const int64_t rows = std::accumulate(lowest.begin(), lowest.end(), int64_t{0});
    Tensor ids(as_column ? Shape{rows, 1} : Shape{rows}, DType::kInt64);
    for (int64_t& id : ids.values<int64_t>()) id = Below(kWords);
    return WithLengths(ids, lengths);
  }

  FeedList FeedsOf(const BatchLengths& batch) {
    const int64_t sequences = std::ssize(batch.ids);
    Tensor label({sequences, 1}, DType::kInt64);
    for (int64_t& value : label.values<int64_t>()) value = Below(kClasses);
    FeedList feeds = {{"ids", Ids({batch.ids}, false)},
                      {"columns", Ids({batch.columns}, true)},
                      {"nested", Ids(batch.nested, false)},
                      {"label", label}};
    if (!depends_on_data_) return feeds;
    Tensor first({sequences, 1}, DType::kInt64), length({sequences, 1}, DType::kInt64);
    for (int64_t i = 0; i < sequences; ++i) {
      const int64_t rows = batch.ids[static_cast<size_t>(i)];
      first.data<int64_t>()[i] = Below(rows + 1);
      length.data<int64_t>()[i] = Below(rows - first.data<int64_t>()[i] + 1);
    }
    Tensor image({sequences, 1, 3, 4}, DType::kFloat32);
    for (float& value : image.values<float>()) value = static_cast<float>(Below(9)) / 4 - 1;
    feeds.insert(feeds.end(), {{"first", first}, {"length", length}, {"image", image}});
    return feeds;
  }

  // Some floats that the program computes; all in the first run.
  FetchList ChooseFetches(const Program& program, bool all) {
    FetchList names;
    for (const auto& op : program.root()->ops()) {
      for (const std::string& name : op->OutputNames()) {
        const Var* var = program.root()->FindVar(name);
        const bool fits = var != nullptr && var->kind == VarKind::kLoDTensor && IsFloat(var->dtype);
        if (fits && (all || Chance(0.15)) && std::ranges::count(names, name) == 0) {
          names.push_back(name);
        }
      }
    }
    return names;
  }

  void AddRuns() {
    size_t index = 0;
    for (const BatchLengths& batch : Batches()) {
      WorkloadRun run;
      run.program = index == 2 || index == 6 ? 1 : 0;
      run.feeds = FeedsOf(batch);
      run.fetches = ChooseFetches(*workload_.programs[run.program], index == 0);
      workload_.runs.push_back(std::move(run));
      ++index;
    }
  }

  const OpRegistry& registry_;
  const RandomRaggedOptions options_;
  std::mt19937_64 random_;
  std::shared_ptr<Program> main_;
  std::shared_ptr<Program> startup_;
  bool depends_on_data_ = false;  // whether shapes do
  Variable columns_, nested_, nested_rows_, label_;
  int nested_group_ = 0;
  std::vector<Rows> rows_;
  std::vector<Variable> pooled_;  // [sequences, width]
  int groups_ = 0;
  int states_ = 0;
  Workload workload_;
};

}  // namespace

Workload RandomRaggedWorkload(const OpRegistry& registry, uint64_t seed,
                              const RandomRaggedOptions& options) {
  return RaggedGenerator(registry, seed, options).Make();
}

}  // namespace skiff::harness
