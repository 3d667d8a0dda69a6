// Several ranks, each a thread with an executor of its own, end with the bits of one process whose
// gradient_merge is the number of ranks: parameters, states of the optimizer, averages, running
// statistics, counters.
//
// Where each rank merges steps, too, each adds up its own gradients first: its ranks have the bits
// of ranks with no other option, and are close to the one process.
//
// Each pair of values of two aspects occurs (model, ranks, buckets, flat lists, optimizer,
// precision, clipping, averages, shards of states, overlap, merged steps). All combinations, in
// some minutes:
//
//   bazel test //tests/models/ranks:ranks_test --config=opt --test_env=SKIFF_ALL_SETTINGS=1
//       --test_timeout=3600
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/base/str_cat.h"
#include "framework/comm/communicator.h"
#include "framework/comm/threads_communicator.h"
#include "framework/training/bound_feeds.h"
#include "skiff/skiff.h"
#include "tests/harness/array_tensor.h"
#include "tests/harness/thread_count.h"
#include "tests/models/ranks/rank_models.h"

namespace skiff::models {
namespace {

using ::testing::IsEmpty;
using training::BoundFeeds;
using training::OptimizationOptions;
using training::TrainingProgram;

constexpr int64_t kUpdates = 4;

struct Setting {
  std::string model;
  int32_t ranks = 2;
  std::vector<std::string> passes = {};
  int64_t bucket_bytes = int64_t{25} << 20;
  std::string optimizer = "momentum";
  DType precision = DType::kFloat32;
  float clip_norm = 0;
  training::AveragingKind averaging = training::AveragingKind::kNone;
  bool shards_optimizer = false;
  Overlap overlap = Overlap::kOff;
  int64_t merged_steps = 1;  // of each rank

  OptimizationOptions Optimization(int64_t merge) const {
    OptimizationOptions options = {.optimizer = optimizer,
                                   .learning_rate = 0.05f,
                                   .schedule = training::ScheduleKind::kLinear,
                                   .total_steps = kUpdates * merge,
                                   .gradient_merge_steps = merge,
                                   .clip_norm = clip_norm,
                                   .averaging = averaging};
    options.precision.dtype = precision;
    return options;
  }
};

void PrintTo(const Setting& setting, std::ostream* out) { *out << setting.model; }

// Batches m = 0, 1, … of the training, across epochs.
std::vector<FeedList> MicroBatches(const RankModel& model, int64_t count) {
  const std::unique_ptr<training::Reader> reader = model.reader();
  std::vector<FeedList> batches;
  reader->StartEpoch(0);
  for (int64_t epoch = 0; static_cast<int64_t>(batches.size()) < count;) {
    // A new one each time, since a reader may use its storage again.
    training::Batch batch;
    if (reader->Next(&batch)) {
      batches.push_back(batch.feeds);
    } else {
      reader->StartEpoch(++epoch);
    }
  }
  return batches;
}

// Trains in one executor on batches first, first + every, ….
class Training {
 public:
  Training(const TrainingProgram& program, const CompileOptions& options) {
    executor_.Run(*program.startup);
    step_.emplace(executor_.Compile(*program.main, options), FetchList{program.loss});
  }

  void Run(const std::vector<FeedList>& batches, size_t first, size_t every) {
    for (size_t i = first; i < batches.size(); i += every) step_->Step(batches[i]);
  }

  Scope& scope() { return executor_.scope(); }
  // On rank 0 with whole states. All ranks call it.
  std::unique_ptr<Scope> GatherScope() { return step_->GatherScope(); }

 private:
  Executor executor_;
  std::optional<BoundFeeds> step_;
};

// Calls work(rank) in a thread for each rank. Rethrows the first Error after all have ended.
template <typename Work>
void InThreads(int32_t ranks, const Work& work) {
  std::vector<std::exception_ptr> errors(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int32_t rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const harness::ThreadCount one(1);
      try {
        work(rank);
      } catch (...) {
        errors[static_cast<size_t>(rank)] = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

bool IsOfRound(const std::string& name) {
  return name.find("@GradientMerge") != std::string::npos ||
         name.find("@GRADIENT_MERGE_STEP@") != std::string::npos;
}

bool IsShard(const std::string& name) { return name.find("@SHARD@") != std::string::npos; }

// Returns the variables that differ. Only the one process has sums of rounds. `may_lack`: whether
// the rank keeps only shards of states.
std::vector<std::string> Differences(const Scope& one, const Scope& rank, bool may_lack = false) {
  std::vector<std::string> different;
  for (const std::string& name : one.Names()) {
    if (IsOfRound(name)) continue;
    const Tensor* found = rank.Find(name);
    if (found == nullptr && may_lack) continue;
    if (found == nullptr || !harness::SameBits(CopyToCpu(*found), CopyToCpu(one.Get(name)))) {
      different.push_back(name);
    }
  }
  return different;
}

// Returns the share of a variable's L2 norm by which the rounding of sums may change the variable.
// In models with relu, a rounding moves a few activations across the kink.
double MostRounding(const std::string& model) {
  const bool has_kinks =
      model == "mlp" || model == "lenet" || model == "resnet20" || model == "vgg11";
  return has_kinks ? 0.1 : 1e-3;
}

// Returns the variables that differ by more than this share of the L2 norm. A gradient too much, or
// a factor, makes a difference of more than any rounding.
std::vector<std::string> LargeDifferences(const Scope& one, const Scope& rank, double most) {
  std::vector<std::string> different;
  for (const std::string& name : one.Names()) {
    if (IsOfRound(name)) continue;
    const std::vector<double> expected = harness::ToArray(one.Get(name)).values;
    const std::vector<double> found = harness::ToArray(rank.Get(name)).values;
    double squares = 1e-12, squares_of_difference = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      squares += expected[i] * expected[i];
      squares_of_difference += (found[i] - expected[i]) * (found[i] - expected[i]);
    }
    if (squares_of_difference > most * most * squares) different.push_back(name);
  }
  return different;
}

// Trains the model by ranks, as the setting says. Calls visit(rank, scope) for each rank in the
// end; rank 0's scope has whole states.
template <typename Visit>
void TrainByRanks(const RankModel& model, const Setting& setting,
                  const std::vector<FeedList>& batches, const Visit& visit) {
  const auto communicators = MakeThreadRanks(setting.ranks, {.seed = 5});
  InThreads(setting.ranks, [&](int32_t rank) {
    const auto r = static_cast<size_t>(rank);
    const TrainingProgram program = model.program(setting.Optimization(setting.merged_steps));
    try {
      Training training(program, {.passes = {.also = setting.passes},
                                  .data_parallel = {.communicator = communicators[r],
                                                    .bucket_bytes = setting.bucket_bytes,
                                                    .overlap = setting.overlap,
                                                    .shard_optimizer = setting.shards_optimizer}});
      training.Run(batches, r, communicators.size());
      visit(rank, training.GatherScope());
    } catch (const Error& error) {
      communicators[r]->Abort(error.what());
      throw;
    }
  });
}

// Returns whether another order of sums changes the results by their rounding only. The other
// optimizers make large numbers of gradients that are zero up to rounding.
bool IsClose(const Setting& setting) {
  return setting.precision == DType::kFloat32 &&
         (setting.optimizer == "momentum" || setting.optimizer == "sgd");
}

class Ranks : public ::testing::TestWithParam<Setting> {};

TEST_P(Ranks, EndWithTheBitsOfOneProcess) {
  const Setting& setting = GetParam();
  const harness::ThreadCount one_thread(1);
  const RankModel model = MakeRankModel(setting.model);
  const int64_t merged = setting.merged_steps * setting.ranks;
  const std::vector<FeedList> batches = MicroBatches(model, kUpdates * merged);

  const TrainingProgram merging = model.program(setting.Optimization(merged));
  Training one(merging, {.passes = {.also = setting.passes}});
  one.Run(batches, 0, 1);
  std::unique_ptr<Scope> plain;
  if (setting.merged_steps > 1) {
    Setting without = setting;
    without.passes.clear();
    without.bucket_bytes = 0;
    without.overlap = Overlap::kOff;
    without.shards_optimizer = false;
    TrainByRanks(model, without, batches, [&](int32_t rank, std::unique_ptr<Scope> scope) {
      if (rank == 0) plain = std::move(scope);
    });
    if (IsClose(setting)) {
      EXPECT_THAT(LargeDifferences(one.scope(), *plain, MostRounding(setting.model)), IsEmpty());
    }
  }
  const Scope& expected = plain == nullptr ? one.scope() : *plain;

  std::vector<std::vector<std::string>> differences(static_cast<size_t>(setting.ranks));
  TrainByRanks(model, setting, batches, [&](int32_t rank, const std::unique_ptr<Scope>& scope) {
    differences[static_cast<size_t>(rank)] =
        Differences(expected, *scope, setting.shards_optimizer && rank != 0);
  });
  EXPECT_THAT(differences, ::testing::Each(IsEmpty()));
}

// Trains a program by ranks with shards of states: `updates` updates on the batches, after `load`
// has changed the scope of each rank. Calls visit(rank, training) for each rank in the end.
template <typename Load, typename Visit>
void TrainInShards(const TrainingProgram& program, int32_t ranks,
                   const std::vector<FeedList>& batches, const Load& load, const Visit& visit) {
  const auto communicators = MakeThreadRanks(ranks, {.seed = 5});
  InThreads(ranks, [&](int32_t rank) {
    const auto r = static_cast<size_t>(rank);
    try {
      Training training(program, {.data_parallel = {.communicator = communicators[r],
                                                    .bucket_bytes = 1024,
                                                    .shard_optimizer = true}});
      load(&training.scope());
      training.Run(batches, r, communicators.size());
      visit(rank, &training);
    } catch (const Error& error) {
      communicators[r]->Abort(error.what());
      throw;
    }
  });
}

int64_t BytesOf(const Scope& scope, const std::function<bool(const std::string&)>& counts) {
  int64_t bytes = 0;
  for (const std::string& name : scope.Names()) {
    if (counts(name)) bytes += scope.Get(name).byte_count();
  }
  return bytes;
}

bool IsMoment(const std::string& name) { return name.find("_moment") != std::string::npos; }

TEST(ShardsOfStates, ArePartsOfTheStates) {
  const RankModel model = MakeRankModel("resnet20");
  const TrainingProgram program = model.program(Setting{.optimizer = "adam"}.Optimization(1));
  Training one(program, {});
  const int64_t whole = BytesOf(one.scope(), IsMoment);
  const auto tensors = static_cast<int64_t>(one.scope().Names().size());
  constexpr int64_t kMostGap = 16 * sizeof(float);  // in a shard, behind the part of a tensor
  int64_t of_all = 0;
  std::mutex mutex;
  TrainInShards(
      program, 3, MicroBatches(model, 3), [](Scope*) {},
      [&](int32_t /*rank*/, Training* training) {
        const int64_t held = BytesOf(training->scope(), IsMoment);
        const std::lock_guard<std::mutex> lock(mutex);
        EXPECT_EQ(held, BytesOf(training->scope(), IsShard)) << "no state is there whole";
        EXPECT_LE(held, whole / 3 + tensors * kMostGap);
        of_all += held;
      });
  EXPECT_GE(of_all, whole);
}

// A checkpoint doesn't show how many ranks have saved it: any number of ranks goes on from it with
// the bits of as many ranks that keep whole states.
TEST(ShardsOfStates, AreSavedWhole) {
  const harness::ThreadCount one_thread(1);
  const RankModel model = MakeRankModel("mlp");
  const auto program_for = [&](int64_t merge) {
    return model.program(Setting{.optimizer = "adam"}.Optimization(merge));
  };
  const TrainingProgram program = program_for(1);
  const std::string directory = StrCat(::testing::TempDir(), "/sharded_checkpoint");
  TrainInShards(
      program, 3, MicroBatches(model, 3 * kUpdates), [](Scope*) {},
      [&](int32_t rank, Training* training) {
        const std::unique_ptr<Scope> whole = training->GatherScope();
        if (rank == 0) SaveCheckpoint(directory, *program.main, *whole, 3 * kUpdates, {});
      });
  for (const int32_t ranks : {1, 2, 4}) {
    const std::vector<FeedList> batches = MicroBatches(model, ranks * kUpdates);
    const TrainingProgram merging = program_for(ranks);
    Training one(merging, {});
    const auto load = [&](const TrainingProgram& into, Scope* scope) {
      LoadLatestCheckpoint(directory, *into.main, scope, {.is_optional = IsOfRound});
    };
    load(merging, &one.scope());
    one.Run(batches, 0, 1);
    std::vector<std::string> differences = {"no rank"};
    TrainInShards(
        program, ranks, batches, [&](Scope* scope) { load(program, scope); },
        [&](int32_t rank, Training* training) {
          const std::unique_ptr<Scope> whole = training->GatherScope();
          if (rank == 0) differences = Differences(one.scope(), *whole);
        });
    EXPECT_THAT(differences, IsEmpty()) << ranks << " ranks";
  }
}

// ---- settings

using Choices = std::vector<size_t>;  // of each aspect, the number of a value

// Sets an aspect of a setting to one of its values.
struct Aspect {
  size_t values;
  std::function<void(size_t value, Setting* setting)> set;
};

template <typename Value, typename Member>
Aspect AspectOf(std::vector<Value> values, Member member) {
  return {values.size(), [values, member](size_t i, Setting* to) { to->*member = values[i]; }};
}

const std::vector<Aspect>& Aspects() {
  static const auto& aspects = *new std::vector<Aspect>{
      AspectOf<std::string>({"mlp", "lenet", "resnet20", "vgg11", "ernie", "char_rnn", "seq2seq",
                             "text_classifier", "words"},
                            &Setting::model),
      AspectOf<std::string>({"momentum", "sgd", "adam", "adamw", "lamb", "lars_momentum", "adagrad",
                             "ftrl", "rmsprop"},
                            &Setting::optimizer),
      AspectOf<int32_t>({2, 3, 4}, &Setting::ranks),
      AspectOf<std::vector<std::string>>(
          {{}, {"fuse_optimizer", "flatten_parameters"}, {"merge_optimizer"}}, &Setting::passes),
      AspectOf<DType>({DType::kFloat32, DType::kBFloat16, DType::kFloat16}, &Setting::precision),
      AspectOf<training::AveragingKind>(
          {training::AveragingKind::kNone, training::AveragingKind::kEma,
           training::AveragingKind::kWindow},
          &Setting::averaging),
      AspectOf<int64_t>({int64_t{25} << 20, 1024}, &Setting::bucket_bytes),
      AspectOf<float>({0, 0.5f}, &Setting::clip_norm),
      AspectOf<bool>({false, true}, &Setting::shards_optimizer),
      AspectOf<Overlap>({Overlap::kOff, Overlap::kOn}, &Setting::overlap),
      AspectOf<int64_t>({1, 2}, &Setting::merged_steps)};
  return aspects;
}

Setting SettingOf(const Choices& choices) {
  Setting setting;
  for (size_t aspect = 0; aspect < choices.size(); ++aspect) {
    Aspects()[aspect].set(choices[aspect], &setting);
  }
  return setting;
}

// The pairs of values of two aspects that no setting has yet.
class OpenPairs {
 public:
  OpenPairs() {
    for (size_t a = 0; a < Aspects().size(); ++a) {
      for (size_t b = a + 1; b < Aspects().size(); ++b) AddAll(a, b);
    }
  }

  bool empty() const { return open_.empty(); }
  // Returns choices that have an open pair, and of each other aspect the value with the most open
  // pairs. Closes the pairs of the choices.
  Choices Take() {
    constexpr size_t kOpen = static_cast<size_t>(-1);
    Choices choices(Aspects().size(), kOpen);
    const auto [a, first, b, second] = *open_.begin();
    choices[a] = first;
    choices[b] = second;
    for (size_t aspect = 0; aspect < choices.size(); ++aspect) {
      if (choices[aspect] == kOpen) choices[aspect] = BestValue(choices, aspect);
    }
    for (size_t aspect = 0; aspect < choices.size(); ++aspect) {
      for (const Pair& pair : PairsOf(choices, aspect, choices[aspect])) open_.erase(pair);
    }
    return choices;
  }

 private:
  using Pair = std::array<size_t, 4>;  // aspect and value, a later aspect and value

  void AddAll(size_t a, size_t b) {
    for (size_t first = 0; first < Aspects()[a].values; ++first) {
      for (size_t second = 0; second < Aspects()[b].values; ++second) {
        open_.insert({a, first, b, second});
      }
    }
  }
  // The pairs of this value of an aspect with the values that are chosen of other aspects.
  static std::vector<Pair> PairsOf(const Choices& choices, size_t aspect, size_t value) {
    std::vector<Pair> pairs;
    for (size_t other = 0; other < choices.size(); ++other) {
      if (other < aspect) pairs.push_back({other, choices[other], aspect, value});
      if (other > aspect) pairs.push_back({aspect, value, other, choices[other]});
    }
    return pairs;
  }
  size_t BestValue(const Choices& choices, size_t aspect) const {
    size_t best = 0;
    int64_t most = -1;
    for (size_t value = 0; value < Aspects()[aspect].values; ++value) {
      const int64_t found = std::ranges::count_if(
          PairsOf(choices, aspect, value), [&](const Pair& pair) { return open_.contains(pair); });
      if (found > most) {
        most = found;
        best = value;
      }
    }
    return best;
  }

  std::set<Pair> open_;
};

std::vector<Setting> Pairs() {
  std::vector<Setting> settings;
  for (OpenPairs open; !open.empty();) settings.push_back(SettingOf(open.Take()));
  return settings;
}

// All combinations of the first `values` of each aspect.
std::vector<Setting> Combinations(const Choices& values) {
  std::vector<Choices> all = {Choices()};
  for (const size_t count : values) {
    std::vector<Choices> longer;
    for (const Choices& choices : all) {
      for (size_t value = 0; value < count; ++value) {
        longer.push_back(choices);
        longer.back().push_back(value);
      }
    }
    all = std::move(longer);
  }
  std::vector<Setting> settings;
  for (const Choices& choices : all) settings.push_back(SettingOf(choices));
  return settings;
}

std::vector<Setting> AskedSettings() {
  if (std::getenv("SKIFF_ALL_SETTINGS") == nullptr) return Pairs();
  // By momentum, without averages and overlap.
  return Combinations({9, 1, 3, 2, 2, 1, 2, 2, 2, 1, 2});
}

INSTANTIATE_TEST_SUITE_P(Settings, Ranks, ::testing::ValuesIn(AskedSettings()),
                         [](const auto& info) {
                           return StrCat(info.param.model, "_", info.index);
                         });

}  // namespace
}  // namespace skiff::models
