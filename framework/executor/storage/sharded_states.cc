#include "framework/executor/storage/sharded_states.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/comm/activity_scope.h"
#include "framework/comm/gather.h"
#include "framework/op/update_part.h"
#include "framework/tensor/dims_agree.h"
#include "framework/tensor/tensor.h"

namespace skiff {
namespace {

// A shard and the states that it has parts of.
struct ShardedList {
  const Var* shard = nullptr;
  std::vector<const Var*> states;
  std::vector<int64_t> counts;  // elements of the states
  std::array<int64_t, 2> part{};
};

void AddLists(const Block& root, const Op& op, std::vector<ShardedList>* lists) {
  const auto slots = op.Attr<std::vector<std::string>>(kShardedAttr, {});
  const auto names = op.Attr<std::vector<std::string>>(kShardOfAttr, {});
  const size_t count = op.Input("Param").size();
  if (names.size() != slots.size() * count) return;  // a program whose user has made the shards
  for (size_t k = 0; k < slots.size(); ++k) {
    ShardedList& list = lists->emplace_back();
    list.shard = root.GetVar(op.Input(slots[k]).at(0));
    for (size_t i = 0; i < count; ++i) {
      list.states.push_back(root.GetVar(names[k * count + i]));
      list.counts.push_back(ElementCount(list.states.back()->dims));
    }
    list.part = PartOf(op, list.counts);
  }
}

std::vector<ShardedList> ListsOf(const Program& program) {
  std::vector<ShardedList> lists;
  for (const auto& op : program.root()->ops()) AddLists(*program.root(), *op, &lists);
  return lists;
}

// Returns elements [begin, begin + count) of a tensor, in its memory.
Tensor ViewOf(const Tensor& tensor, int64_t begin, int64_t count) {
  return Tensor(Shape({count}), tensor.dtype(), tensor.buffer(),
                tensor.offset_bytes() + begin * SizeOf(tensor.dtype()));
}

// Returns the state in the scope, or nullptr.
const Tensor* FindState(const Var& state, const Scope& scope) {
  const Tensor* held = scope.Find(state.name);
  if (held == nullptr) return nullptr;
  const bool fits = held->has_data() && held->layout().is_plain() && held->dtype() == state.dtype &&
                    DimsAgree(state.dims, held->shape().dims());
  SKIFF_ENFORCE(fits, kInvalidArgument, "variable \"", state.name, "\": the scope holds ",
                held->dtype(), " ", held->shape(), ", the program declares ", state.dtype, " [",
                Join(state.dims, ", "), "]");
  return held;
}

// Returns a copy of the shard in the scope, or zeros if all states are there.
Tensor NewShard(const ShardedList& list, const std::vector<const Tensor*>& held,
                const Scope& scope) {
  const Tensor* old = scope.Find(list.shard->name);
  const auto missing = std::ranges::find(held, nullptr);
  SKIFF_ENFORCE(old != nullptr || missing == held.end(), kFailedPrecondition, "the scope lacks \"",
                list.states[static_cast<size_t>(missing - held.begin())]->name,
                "\", an optimizer state of which each rank is to keep a part: run the startup "
                "program or load a checkpoint first; a program with other buckets or ranks may "
                "keep it in shards of its own");
  if (old != nullptr) return CopyToCpu(*old);
  Tensor shard(Shape(list.shard->dims), list.shard->dtype);
  std::memset(shard.raw_data(), 0, static_cast<size_t>(shard.byte_count()));
  return shard;
}

void Cut(const ShardedList& list, Scope* scope) {
  std::vector<const Tensor*> held;
  for (const Var* state : list.states) held.push_back(FindState(*state, *scope));
  const auto is_held = [](const Tensor* tensor) { return tensor != nullptr; };
  const bool has_any = std::ranges::any_of(held, is_held);
  if (!has_any && scope->Find(list.shard->name) != nullptr) return;
  Tensor shard = NewShard(list, held, *scope);
  const std::vector<PartPiece> pieces = PiecesOf(list.counts, list.part[0], list.part[1]);
  for (size_t i = 0; i < held.size(); ++i) {
    const auto& [begin, count, place] = pieces[i];
    if (held[i] == nullptr || count == 0) continue;
    Tensor to = ViewOf(shard, place, count);
    CopyTensor(ViewOf(*held[i], begin, count), &to);
  }
  scope->Set(list.shard->name, std::move(shard));
  for (const Var* state : list.states) scope->Erase(state->name);
}

// Sets the states of a list in rank 0's `whole`, from the shards of all ranks.
void Gather(const ShardedList& list, const Tensor& shard, Communicator* communicator,
            Scope* whole) {
  const std::string activity = StrCat("the gathering of ", list.shard->name);
  const ActivityScope scope(communicator, &activity);
  const std::vector<int64_t> parts =
      GatherNumbers(communicator, std::span<const int64_t>(list.part));
  if (communicator->world().rank != 0) {
    const OutMessage message = {.to = 0, .data = shard.raw_data(), .bytes = shard.byte_count()};
    communicator->Exchange({&message, 1}, {}, nullptr);
    return;
  }
  std::vector<Tensor> shards = {shard};
  std::vector<InMessage> messages;
  std::vector<std::vector<PartPiece>> pieces;
  for (int32_t rank = 0; rank < communicator->world().size; ++rank) {
    const int64_t* part = &parts[2 * static_cast<size_t>(rank)];
    pieces.push_back(PiecesOf(list.counts, part[0], part[1]));
    if (rank == 0) continue;
    Tensor& received = shards.emplace_back(Shape({ShardElements(pieces.back())}), shard.dtype());
    messages.push_back({.from = rank, .data = received.raw_data(), .bytes = received.byte_count()});
  }
  communicator->Exchange({}, messages, nullptr);
  for (size_t i = 0; i < list.states.size(); ++i) {
    Tensor state(Shape(list.states[i]->dims), list.states[i]->dtype);
    for (size_t rank = 0; rank < shards.size(); ++rank) {
      const auto& [begin, count, place] = pieces[rank][i];
      if (count == 0) continue;
      Tensor to = ViewOf(state, begin, count);
      CopyTensor(ViewOf(shards[rank], place, count), &to);
    }
    whole->Set(list.states[i]->name, std::move(state));
  }
}

}  // namespace

void ShardStates(const Program& program, Scope* scope) {
  for (const ShardedList& list : ListsOf(program)) Cut(list, scope);
}

std::unique_ptr<Scope> GatherStates(const Program& program, const Scope& scope,
                                    Communicator* communicator) {
  auto whole = std::make_unique<Scope>();
  for (const std::string& name : scope.Names()) whole->Set(name, scope.Get(name));
  for (const ShardedList& list : ListsOf(program)) {
    const Tensor& shard = scope.Get(list.shard->name);
    Gather(list, shard.place().is_cpu() ? shard : CopyToCpu(shard), communicator, whole.get());
    whole->Erase(list.shard->name);
  }
  return whole;
}

}  // namespace skiff
