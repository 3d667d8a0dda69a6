// A task is a tile of a head, or a head as a whole; threads share the tasks.
#include "operators/nn/attention/attention_kernels.h"

#include <algorithm>
#include <memory>
#include <string>

#include "framework/base/element_count.h"
#include "framework/base/parallel.h"
#include "framework/op/arguments.h"
#include "operators/common/dropout_settings.h"
#include "operators/nn/attention/attention_arguments.h"
#include "operators/nn/attention/first_place.h"
#include "operators/nn/attention/head_attention.h"

namespace skiff {
namespace {

// The rows of each sequence of a head that are fetched ahead, at most: those of long ones would
// push each other out of the cache.
constexpr int64_t kRowsAhead = 2 * AttentionSizes::kTile;
// So many at a time that all come in time where there are so many queries. Backward takes more
// products for its rows.
constexpr int64_t kForwardAtATime = 6;
constexpr int64_t kBackwardAtATime = 4;

// What forward and backward have in common: the arguments of a head, scratch memory, threads.
template <typename T>
class AttentionCall {
 public:
  AttentionCall(PrepareContext& context, bool for_gradient)
      : sizes_(ParseAttention(context)),
        query_(InputPlaces(context, sizes_, AttentionPart::kQuery)),
        key_(InputPlaces(context, sizes_, AttentionPart::kKey)),
        value_(InputPlaces(context, sizes_, AttentionPart::kValue)),
        bias_(context),
        key_lengths_(context, "KeyLengths"),
        positions_(context, "Positions"),
        op_(context.op().type),
        scale_(static_cast<WideType<T>>(context.Attr<float>("scale"))),
        dropout_(DropoutSettingsOf(context)),
        scratch_bytes_(RoundUp(AttentionScratchBytes<T>(sizes_, for_gradient), 64)) {}

  const AttentionSizes& sizes() const { return sizes_; }
  // Takes the sequences of the run, no more than those that it was prepared for.
  void FollowRows(const KernelContext& run) {
    sizes_.batch = run.input(query_.argument).shape()[0];
  }
  int64_t head_count() const { return sizes_.batch * sizes_.heads; }
  int64_t query_tasks() const { return head_count() * sizes_.query_tiles(); }
  const DropoutSettings& dropout() const { return dropout_; }

  // Requests memory for up to `tasks` tasks at a time.
  void RequestScratch(PrepareContext& context, int64_t tasks) {
    slots_ = std::clamp<int64_t>(tasks, 1, omp_get_max_threads());
    workspace_ = context.RequestWorkspace(MultiplyCounts(slots_, scratch_bytes_));
  }
  int64_t slots() const { return slots_; }

  void CheckData(const KernelContext& run) const {
    CheckKeyLengths(run, key_lengths_, sizes_, op_);
  }

  // Calls run_task(task, next, scratch) for tasks [0, tasks), of which a thread takes `together` in
  // a row; `next` is the thread's next one, or -1. Neighbours run at the same time: where attention
  // is causal they take about the same time.
  template <typename Task>
  void ForTasks(const KernelContext& run, int64_t tasks, int64_t together,
                const Task& run_task) const {
    auto* memory = static_cast<char*>(run.workspace(workspace_));
    ParallelFor(slots_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t slot = begin; slot < end; ++slot) {
        for (int64_t task = slot * together; task < tasks;) {
          const bool is_last = (task + 1) % together == 0;
          const int64_t next = task + 1 + (is_last ? (slots_ - 1) * together : 0);
          run_task(task, next < tasks ? next : -1, memory + slot * scratch_bytes_);
          task = next;
        }
      }
    });
  }

  // Adds the keys and values of a head.
  void AddKeys(const HeadArguments<T>& head, RowsAhead* ahead) const {
    for (const HeadRows<const T>& rows : {head.key, head.value})
      ahead->Add(rows, 0, std::min(head.known_keys, kRowsAhead), sizes_.width);
  }

  // What a task computes with.
  struct Head {
    AttentionSizes sizes;
    HeadArguments<T> arguments;
  };

  // `head`: of all sequences' heads.
  Head HeadOf(const KernelContext& run, const RandomKey& key, int64_t head) const {
    const int64_t n = head / sizes_.heads;
    const int64_t h = head % sizes_.heads;
    const auto rows = [&](const HeadPlaces& places) {
      return places.At<const T>(run.input(places.argument).template data<T>(), n, h);
    };
    HeadArguments<T> arguments{.query = rows(query_),
                               .key = rows(key_),
                               .value = rows(value_),
                               .bias = bias_.At<T>(run, n, h),
                               .known_keys = sizes_.keys,
                               .scale = scale_};
    if (dropout_.draws()) {
      arguments.dropout = {.key = key,
                           .threshold = dropout_.threshold(),
                           .scale = dropout_.scale(),
                           .first_word = static_cast<uint64_t>(head) *
                                         static_cast<uint64_t>(sizes_.queries) *
                                         static_cast<uint64_t>(sizes_.keys)};
    }
    AttentionSizes sizes = sizes_;
    if (positions_.is_there() && sizes.queries > 0) {
      // Read once: what a query sees, and what is known, must fit together, even if another thread
      // changes a feed meanwhile.
      sizes.first_place =
          ClampedPlace(positions_(run)[n * sizes.queries], sizes.keys - sizes.queries);
      arguments.known_keys = sizes.first_place + sizes.queries;
    } else if (const int64_t* lengths = key_lengths_(run); lengths != nullptr) {
      // Clamped again: another thread may have changed a feed since it was checked.
      arguments.known_keys = std::clamp<int64_t>(lengths[n], 0, sizes.keys);
    }
    return {.sizes = sizes, .arguments = arguments};
  }

 private:
  AttentionSizes sizes_;
  HeadPlaces query_;
  HeadPlaces key_;
  HeadPlaces value_;
  BiasPlaces bias_;
  In<int64_t> key_lengths_;
  In<int64_t> positions_;
  std::string op_;
  WideType<T> scale_;
  DropoutSettings dropout_;
  int64_t scratch_bytes_;
  int64_t slots_ = 1;
  int workspace_ = -1;
};

template <typename T>
std::unique_ptr<Kernel> PrepareAttention(PrepareContext& context) {
  AttentionCall<T> call(context, /*for_gradient=*/false);
  call.RequestScratch(context, call.query_tasks());
  const Out<T> out(context, "Out");
  const Out<WideType<T>> row_max(context, "RowMax");
  const Out<WideType<T>> row_sum(context, "RowSum");
  const Out<int64_t> dropout_key(context, "DropoutKey");
  return MakeRowsKernel([=](const KernelContext& run) mutable {
    call.FollowRows(run);
    call.CheckData(run);
    const RandomKey key = call.dropout().KeyOf(run);
    if (dropout_key.is_there()) {
      int64_t* numbers = dropout_key(run);
      numbers[0] = static_cast<int64_t>(key.seed);
      numbers[1] = static_cast<int64_t>(key.op_id);
      numbers[2] = static_cast<int64_t>(key.step);
    }
    const AttentionSizes& sizes = call.sizes();
    const HeadPlaces places = OutPlaces(sizes);
    const auto attend = [&, out = out(run), row_max = row_max(run), row_sum = row_sum(run)](
                            int64_t task, int64_t next, void* scratch) {
      const int64_t head = task / sizes.query_tiles();
      const int64_t first_row = head * sizes.queries;
      const auto out_rows = [&](int64_t of) {
        return places.At(out, of / sizes.heads, of % sizes.heads);
      };
      const HeadOutputs<T> outputs{.out = out_rows(head),
                                   .row_max = row_max == nullptr ? nullptr : row_max + first_row,
                                   .row_sum = row_sum == nullptr ? nullptr : row_sum + first_row};
      RowsAhead ahead(kForwardAtATime);
      if (next >= 0) {
        const int64_t next_head = next / sizes.query_tiles();
        const int64_t query = next % sizes.query_tiles() * AttentionSizes::kTile;
        const int64_t queries = std::min(AttentionSizes::kTile, sizes.queries - query);
        const HeadArguments<T> rows = call.HeadOf(run, key, next_head).arguments;
        ahead.Add(rows.query, query, queries, sizes.width);
        if (next_head != head) call.AddKeys(rows, &ahead);
        ahead.Add(out_rows(next_head), query, queries, sizes.width);
      }
      const auto of_head = call.HeadOf(run, key, head);
      AttendTile<T>(of_head.sizes, of_head.arguments, outputs, task % sizes.query_tiles(), &ahead,
                    scratch);
    };
    // A thread that has all tiles of a head reads its keys once.
    const int64_t together = call.head_count() >= 4 * call.slots() ? sizes.query_tiles() : 1;
    call.ForTasks(run, call.query_tasks(), together, attend);
  });
}

template <typename T>
class AttentionGradKernel final : public Kernel {
 public:
  explicit AttentionGradKernel(PrepareContext& context)
      : call_(context, /*for_gradient=*/true), arguments_(context, call_.sizes()) {
    const AttentionSizes& sizes = call_.sizes();
    call_.RequestScratch(context,
                         call_.head_count() * std::max(sizes.query_tiles(), sizes.key_tiles()));
  }

  bool AcceptsFewerRows() const override { return true; }

  void Run(const KernelContext& run) override {
    call_.FollowRows(run);
    call_.CheckData(run);
    const AttentionSizes& sizes = call_.sizes();
    const RandomKey key = LoadKey(run);
    const TileRange queries{0, sizes.query_tiles()};
    const TileRange keys{0, sizes.key_tiles()};
    if (sizes.queries == 0 || sizes.keys == 0) return ClearGradients(run);
    if (RunsWholeHeads()) {
      call_.ForTasks(run, call_.head_count(), 1, [&](int64_t head, int64_t next, void* scratch) {
        RowsAhead ahead(kBackwardAtATime);
        if (next >= 0)
          AddHead(call_.HeadOf(run, key, next).arguments, Gradients(run, next), &ahead);
        const auto of_head = call_.HeadOf(run, key, head);
        AttendGradient<T>(of_head.sizes, of_head.arguments, Gradients(run, head), queries, keys,
                          &ahead, scratch);
      });
      return;
    }
    RowsAhead nothing;
    call_.ForTasks(run, call_.head_count() * keys.end, 1,
                   [&](int64_t task, int64_t, void* scratch) {
                     const int64_t head = task / keys.end;
                     const int64_t tile = task % keys.end;
                     HeadGradients<T> gradients = Gradients(run, head);
                     gradients.query = {};
                     const auto of_head = call_.HeadOf(run, key, head);
                     AttendGradient<T>(of_head.sizes, of_head.arguments, gradients, queries,
                                       {tile, tile + 1}, &nothing, scratch);
                   });
    call_.ForTasks(run, call_.head_count() * queries.end, 1,
                   [&](int64_t task, int64_t, void* scratch) {
                     const int64_t head = task / queries.end;
                     const int64_t tile = task % queries.end;
                     HeadGradients<T> gradients = Gradients(run, head);
                     gradients.key = {};
                     gradients.value = {};
                     const auto of_head = call_.HeadOf(run, key, head);
                     AttendGradient<T>(of_head.sizes, of_head.arguments, gradients,
                                       {tile, tile + 1}, keys, &nothing, scratch);
                   });
  }

 private:
  // A head as one task takes 5 products for each pair of tiles; two passes, one for keys and one
  // for queries, take 7, but their tasks are small enough for all threads to have one. The bits are
  // the same.
  bool RunsWholeHeads() const {
    const int64_t heads = call_.head_count();
    return 5 * RoundUp(heads, call_.slots()) <= 7 * heads;
  }

  // Adds what the gradients of a whole head take, and where they go.
  void AddHead(const HeadArguments<T>& head, const HeadGradients<T>& gradients,
               RowsAhead* ahead) const {
    const AttentionSizes& sizes = call_.sizes();
    const int64_t queries = std::min(sizes.queries, kRowsAhead);
    for (const HeadRows<const T>& rows : {head.query, gradients.out_gradient, gradients.out})
      ahead->Add(rows, 0, queries, sizes.width);
    call_.AddKeys(head, ahead);
    ahead->Add(gradients.query, 0, queries, sizes.width);
    for (const HeadRows<T>& rows : {gradients.key, gradients.value})
      ahead->Add(rows, 0, std::min(sizes.keys, kRowsAhead), sizes.width);
  }

  RandomKey LoadKey(const KernelContext& run) const {
    if (!call_.dropout().draws()) return {};
    const auto* numbers = arguments_.dropout_key(run);
    return {static_cast<uint64_t>(numbers[0]), static_cast<uint64_t>(numbers[1]),
            static_cast<uint64_t>(numbers[2])};
  }

  // Sums over no queries or no keys.
  void ClearGradients(const KernelContext& run) const {
    for (const HeadPlaces& places : {arguments_.query, arguments_.key, arguments_.value}) {
      if (places.argument < 0) continue;
      Tensor& gradient = run.output(places.argument);
      std::fill_n(gradient.template data<T>(), gradient.element_count(), T{0});
    }
  }

  HeadGradients<T> Gradients(const KernelContext& run, int64_t head) const {
    const AttentionSizes& sizes = call_.sizes();
    const int64_t n = head / sizes.heads;
    const int64_t h = head % sizes.heads;
    const HeadPlaces out = OutPlaces(call_.sizes());
    const auto rows = [&](const HeadPlaces& places) {
      return places.At(arguments_.Data(run, places), n, h);
    };
    return {.out = out.At(arguments_.out(run), n, h),
            .out_gradient = out.At(arguments_.out_gradient(run), n, h),
            .row_max = arguments_.row_max(run) + head * sizes.queries,
            .row_sum = arguments_.row_sum(run) + head * sizes.queries,
            .query = rows(arguments_.query),
            .key = rows(arguments_.key),
            .value = rows(arguments_.value)};
  }

  AttentionCall<T> call_;
  AttentionGradArguments<T> arguments_;
};

template <typename T>
std::unique_ptr<Kernel> PrepareAttentionGrad(PrepareContext& context) {
  return std::make_unique<AttentionGradKernel<T>>(context);
}

}  // namespace

void AddAttentionKernels(OpRegistry& registry) {
  const auto prepare = []<typename T>(PrepareContext& context) {
    return PrepareAttention<T>(context);
  };
  const auto prepare_grad = []<typename T>(PrepareContext& context) {
    return PrepareAttentionGrad<T>(context);
  };
  registry.AddCpuKernels<float, double>("multihead_attention", prepare);
  registry.AddCpuKernels<float, double>("multihead_attention_grad", prepare_grad);
  if (!HasBFloat16Attention()) return;
  registry.AddNativeKernel<BFloat16>("multihead_attention", prepare);
  registry.AddNativeKernel<BFloat16>("multihead_attention_grad", prepare_grad);
}

}  // namespace skiff
