// Several ranks, each a thread with an executor of its own, end with the bits of one process whose
// gradient_merge is the number of ranks: parameters, states of the optimizer, averages, running
// statistics, counters.
//
// Where each rank merges steps, too, each adds up its own gradients first: its ranks have the bits
// of ranks with no other option, and are close to the one process.
//
// All pairs of settings occur (model, ranks, buckets, flat lists, optimizer, precision, clipping,
// averages, shards of states, overlap, merged steps), not all combinations. All combinations, in
// some minutes:
//
//   bazel test //tests/models/ranks:ranks_test --config=opt --test_env=SKIFF_ALL_SETTINGS=1
//       --test_timeout=3600
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
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

// Returns the variables that aren't equal up to rounding.
std::vector<std::string> LargeDifferences(const Scope& one, const Scope& rank) {
  constexpr double kMost = 1e-3;  // of the largest element
  std::vector<std::string> different;
  for (const std::string& name : one.Names()) {
    if (IsOfRound(name)) continue;
    const std::vector<double> expected = harness::ToArray(one.Get(name)).values;
    const std::vector<double> found = harness::ToArray(rank.Get(name)).values;
    double largest = 1e-6;
    for (const double value : expected) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < expected.size(); ++i) {
      if (std::abs(found[i] - expected[i]) > kMost * largest) {
        different.push_back(name);
        break;
      }
    }
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
    EXPECT_THAT(LargeDifferences(one.scope(), *plain), IsEmpty());
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

constexpr auto kEma = training::AveragingKind::kEma;
constexpr auto kWindow = training::AveragingKind::kWindow;
const std::vector<std::string> kFlat = {"fuse_optimizer", "flatten_parameters"};
const std::vector<std::string> kMerged = {"merge_optimizer"};

// A few settings in which all pairs occur.
std::vector<Setting> Pairs() {
  return {
      Setting{.model = "mlp", .ranks = 3, .passes = kFlat, .optimizer = "adam", .clip_norm = 0.1f},
      Setting{.model = "mlp", .ranks = 2, .bucket_bytes = 1024, .averaging = kEma},
      Setting{.model = "mlp", .ranks = 4, .passes = kMerged, .optimizer = "lars_momentum"},
      Setting{.model = "lenet",
              .ranks = 4,
              .passes = kFlat,
              .bucket_bytes = 1024,
              .averaging = kWindow},
      Setting{.model = "lenet", .ranks = 2, .optimizer = "lamb", .precision = DType::kBFloat16},
      Setting{.model = "resnet20", .ranks = 2, .passes = kFlat, .averaging = kEma},
      Setting{.model = "resnet20",
              .ranks = 3,
              .bucket_bytes = 1024,
              .optimizer = "adamw",
              .precision = DType::kBFloat16,
              .clip_norm = 1},
      Setting{.model = "vgg11", .ranks = 2, .passes = kMerged, .clip_norm = 1},
      Setting{.model = "ernie",
              .ranks = 2,
              .passes = kFlat,
              .bucket_bytes = 1024,
              .optimizer = "adamw",
              .precision = DType::kBFloat16,
              .clip_norm = 1},
      Setting{.model = "ernie", .ranks = 3, .optimizer = "adam", .averaging = kEma},
      Setting{.model = "ernie",
              .ranks = 4,
              .passes = kFlat,
              .optimizer = "lamb",
              .precision = DType::kFloat16},
      Setting{.model = "text_classifier", .ranks = 3, .passes = kFlat, .optimizer = "adam"},
      Setting{.model = "text_classifier", .ranks = 4, .bucket_bytes = 1024, .clip_norm = 0.5f},
      Setting{.model = "char_rnn",
              .ranks = 2,
              .bucket_bytes = 1024,
              .optimizer = "adam",
              .clip_norm = 1},
      Setting{.model = "char_rnn", .ranks = 3, .passes = kFlat, .precision = DType::kBFloat16},
      Setting{.model = "seq2seq", .ranks = 2, .passes = kFlat, .optimizer = "adam", .clip_norm = 1},
      Setting{.model = "seq2seq", .ranks = 4, .optimizer = "sgd", .averaging = kWindow},
      Setting{.model = "words", .ranks = 2, .optimizer = "adam"},
      Setting{.model = "words",
              .ranks = 4,
              .passes = kFlat,
              .bucket_bytes = 1024,
              .optimizer = "adagrad"},
      Setting{.model = "words", .ranks = 3, .optimizer = "ftrl", .clip_norm = 0.1f},
      Setting{.model = "mlp",
              .ranks = 3,
              .bucket_bytes = 1024,
              .optimizer = "adam",
              .shards_optimizer = true},
      Setting{.model = "lenet",
              .ranks = 4,
              .optimizer = "lars_momentum",
              .averaging = kWindow,
              .shards_optimizer = true},
      Setting{.model = "resnet20", .ranks = 2, .passes = kFlat, .shards_optimizer = true},
      Setting{.model = "ernie",
              .ranks = 2,
              .passes = kFlat,
              .optimizer = "adamw",
              .precision = DType::kBFloat16,
              .clip_norm = 1,
              .shards_optimizer = true},
      Setting{.model = "ernie",
              .ranks = 3,
              .bucket_bytes = 1024,
              .optimizer = "lamb",
              .precision = DType::kFloat16,
              .averaging = kEma,
              .shards_optimizer = true},
      Setting{.model = "seq2seq",
              .ranks = 3,
              .optimizer = "rmsprop",
              .clip_norm = 1,
              .averaging = kEma,
              .shards_optimizer = true},
      Setting{.model = "words", .ranks = 2, .optimizer = "adagrad", .shards_optimizer = true},
      Setting{.model = "resnet20",
              .ranks = 3,
              .bucket_bytes = 1024,
              .overlap = Overlap::kOn,
              .merged_steps = 2},
      Setting{.model = "ernie",
              .ranks = 2,
              .passes = kFlat,
              .optimizer = "adamw",
              .precision = DType::kBFloat16,
              .clip_norm = 1,
              .overlap = Overlap::kOn},
      Setting{.model = "seq2seq",
              .ranks = 4,
              .bucket_bytes = 1024,
              .optimizer = "adam",
              .shards_optimizer = true,
              .overlap = Overlap::kOn},
      Setting{.model = "words",
              .ranks = 3,
              .optimizer = "adam",
              .averaging = kEma,
              .overlap = Overlap::kOn},
      Setting{.model = "mlp",
              .ranks = 2,
              .passes = kFlat,
              .optimizer = "adam",
              .clip_norm = 0.1f,
              .shards_optimizer = true,
              .merged_steps = 3}};
}

// All combinations of what a user chooses. The optimizer is momentum: adam would make large numbers
// of gradients that are zero up to rounding.
std::vector<Setting> Combinations() {
  std::vector<Setting> all = {Setting()};
  const auto vary = [&all](const auto& values, const auto& set) {
    std::vector<Setting> varied;
    for (const Setting& setting : all) {
      for (const auto& value : values) set(value, &varied.emplace_back(setting));
    }
    all = std::move(varied);
  };
  const std::string kModels[] = {"mlp",      "lenet",   "resnet20",        "vgg11", "ernie",
                                 "char_rnn", "seq2seq", "text_classifier", "words"};
  const bool kBoth[] = {false, true};
  vary(kModels, [](const std::string& model, Setting* to) { to->model = model; });
  vary(std::vector<int32_t>{2, 3, 4}, [](int32_t ranks, Setting* to) { to->ranks = ranks; });
  vary(kBoth, [](bool is_small, Setting* to) {
    if (is_small) to->bucket_bytes = 1024;
  });
  vary(kBoth, [](bool is_flat, Setting* to) {
    if (is_flat) to->passes = kFlat;
  });
  vary(kBoth, [](bool shards, Setting* to) { to->shards_optimizer = shards; });
  vary(kBoth, [](bool is_half, Setting* to) {
    if (is_half) to->precision = DType::kBFloat16;
  });
  vary(kBoth, [](bool clips, Setting* to) { to->clip_norm = clips ? 0.5f : 0; });
  vary(kBoth, [](bool merges, Setting* to) { to->merged_steps = merges ? 2 : 1; });
  vary(kBoth,
       [](bool overlaps, Setting* to) { to->overlap = overlaps ? Overlap::kOn : Overlap::kOff; });
  return all;
}

INSTANTIATE_TEST_SUITE_P(
    Settings, Ranks,
    ::testing::ValuesIn(std::getenv("SKIFF_ALL_SETTINGS") == nullptr ? Pairs() : Combinations()),
    [](const auto& info) { return StrCat(info.param.model, "_", info.index); });

}  // namespace
}  // namespace skiff::models
