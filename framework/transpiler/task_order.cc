// See the header for the idea. Memory simulates what is live, and can take tasks back. Sequence is
// one sweep: it runs tasks in the given order, but before a task that would exceed the bound it
// tries to free a buffer (LetGo) by running its remaining users early. OrderForMemory alternates
// sweeps forward and, on the reversed graph, backward, lowers the bound after each success, and
// stops after a row of failures. All limits count work, never time, so that equal graphs give equal
// orders.
#include "framework/transpiler/task_order.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

namespace skiff {
namespace {

using Order = std::vector<int32_t>;

template <typename T>
decltype(auto) At(T& elements, int32_t i) {
  return elements[static_cast<size_t>(i)];
}

// The buffers that are live as tasks run one by one.
class Memory {
 public:
  explicit Memory(const TaskGraph& graph) : graph_(graph), uses_(graph.buffers.size()) {
    for (const TaskGraph::Task& task : graph.tasks) {
      for (const int32_t buffer : task.buffers) ++At(uses_, buffer).all;
    }
    for (size_t i = 0; i < uses_.size(); ++i) {
      uses_[i].left = uses_[i].all;
      if (graph.buffers[i].lives_from_start) live_bytes_ += graph.buffers[i].bytes;
    }
  }

  bool IsBorn(int32_t buffer) const {
    const Uses& uses = At(uses_, buffer);
    return uses.left < uses.all || At(graph_.buffers, buffer).lives_from_start;
  }
  bool IsLive(int32_t buffer) const { return IsBorn(buffer) && !IsDead(buffer); }

  // Returns the bytes that would be live while the task runs, if it were the next one.
  int64_t BytesDuring(int32_t task) const {
    int64_t bytes = live_bytes_ + At(graph_.tasks, task).workspace_bytes;
    for (const int32_t buffer : At(graph_.tasks, task).buffers) {
      if (!IsBorn(buffer)) bytes += BytesOf(buffer);
    }
    return bytes - BytesInPlace(At(graph_.tasks, task).in_place);
  }

  void Run(int32_t task) {
    for (const int32_t buffer : At(graph_.tasks, task).buffers) {
      if (!IsBorn(buffer)) live_bytes_ += BytesOf(buffer);
      --At(uses_, buffer).left;
      if (IsDead(buffer)) live_bytes_ -= BytesOf(buffer);
    }
  }

  // Undoes the last Run.
  void TakeBack(int32_t task) {
    for (const int32_t buffer : At(graph_.tasks, task).buffers) {
      if (IsDead(buffer)) live_bytes_ += BytesOf(buffer);
      ++At(uses_, buffer).left;
      if (!IsBorn(buffer)) live_bytes_ -= BytesOf(buffer);
    }
  }

 private:
  struct Uses {
    int32_t all = 0;
    int32_t left = 0;
  };

  int64_t BytesOf(int32_t buffer) const { return At(graph_.buffers, buffer).bytes; }
  bool IsDead(int32_t buffer) const {
    return At(uses_, buffer).left == 0 && !At(graph_.buffers, buffer).lives_to_end;
  }

  int64_t BytesInPlace(const std::vector<std::pair<int32_t, int32_t>>& pairs) const {
    int64_t bytes = 0;
    for (auto pair = pairs.begin(); pair != pairs.end(); ++pair) {
      const auto [from, to] = *pair;
      const bool dies = At(uses_, from).left == 1 && !At(graph_.buffers, from).lives_to_end;
      if (!dies || IsBorn(to)) continue;
      // Each buffer takes part in one pair at most.
      const bool is_taken = std::any_of(pairs.begin(), pair, [&](const auto& earlier) {
        return earlier.first == pair->first || earlier.second == pair->second;
      });
      if (!is_taken) bytes += BytesOf(to);
    }
    return bytes;
  }

  const TaskGraph& graph_;
  std::vector<Uses> uses_;  // by buffer, the tasks
  int64_t live_bytes_ = 0;
};

// By buffer, the tasks.
using Users = std::vector<std::vector<int32_t>>;

Users UsersOf(const TaskGraph& graph) {
  Users users(graph.buffers.size());
  for (size_t i = 0; i < graph.tasks.size(); ++i) {
    for (const int32_t buffer : graph.tasks[i].buffers) {
      At(users, buffer).push_back(static_cast<int32_t>(i));
    }
  }
  return users;
}

// Runs the tasks in a given order, but before a task that would exceed a bound, runs others first
// that free a buffer.
class Sequence {
 public:
  Sequence(const TaskGraph& graph, const Users& users, const Order& given, int64_t bound)
      : graph_(graph),
        users_(users),
        given_(given),
        bound_(bound),
        memory_(graph),
        rank_(given.size()),
        has_run_(given.size(), false),
        found_in_(given.size(), 0),
        waits_(graph.buffers.size()) {
    for (size_t i = 0; i < given.size(); ++i) At(rank_, given[i]) = static_cast<int32_t>(i);
    for (size_t i = 0; i < graph.buffers.size(); ++i) UpdateLive(static_cast<int32_t>(i));
  }

  Order Run() {
    for (const int32_t next : given_) {
      if (At(has_run_, next)) continue;
      while (memory_.BytesDuring(next) > bound_ && MakeRoom(next)) {
      }
      RunTask(next);
    }
    return std::move(order_);
  }

 private:
  // The most tasks that are run early to free one buffer.
  static constexpr size_t kMostTasks = 16;
  // The most buffers that are considered at a time, the largest first.
  static constexpr size_t kMostLookedAt = 256;
  // Buffers smaller than the missing bytes divided by this are no help.
  static constexpr int64_t kSmallShare = 16;

  // How long a buffer isn't tried again: twice as long after each failure. This keeps the sweep
  // about linear where nothing can be gained.
  struct Wait {
    size_t tasks = 0;
    size_t until = 0;  // so many have run
  };

  void RunTask(int32_t task) {
    const std::vector<int32_t>& buffers = At(graph_.tasks, task).buffers;
    for (const int32_t buffer : buffers) {
      if (!memory_.IsBorn(buffer)) born_.push_back(buffer);
    }
    memory_.Run(task);
    At(has_run_, task) = true;
    order_.push_back(task);
    std::ranges::for_each(buffers, [&](int32_t buffer) { UpdateLive(buffer); });
  }

  void TakeBackTo(size_t tasks) {
    while (order_.size() > tasks) {
      const int32_t task = order_.back();
      order_.pop_back();
      At(has_run_, task) = false;
      memory_.TakeBack(task);
      for (const int32_t buffer : At(graph_.tasks, task).buffers) {
        if (!memory_.IsBorn(buffer)) born_.pop_back();
        UpdateLive(buffer);
      }
    }
  }

  void UpdateLive(int32_t buffer) {
    const std::pair entry(-At(graph_.buffers, buffer).bytes, buffer);
    if (memory_.IsLive(buffer) && !At(graph_.buffers, buffer).lives_to_end) {
      live_.insert(entry);
    } else {
      live_.erase(entry);
    }
  }

  // Runs tasks that free a buffer, the largest possible. Returns false if there is none.
  bool MakeRoom(int32_t next) {
    const int64_t missing = memory_.BytesDuring(next) - bound_;
    std::vector<int32_t> candidates;
    size_t looked_at = 0;
    for (const auto& [negative_bytes, buffer] : live_) {
      if (-negative_bytes < missing / kSmallShare || ++looked_at > kMostLookedAt) break;
      if (At(waits_, buffer).until <= order_.size()) candidates.push_back(buffer);
    }
    return std::ranges::any_of(candidates, [&](int32_t buffer) {
      if (LetGo(buffer, next)) return true;
      Wait& wait = At(waits_, buffer);
      wait.tasks = 2 * wait.tasks + 1;
      wait.until = order_.size() + wait.tasks;
      return false;
    });
  }

  // Runs the remaining tasks that use the buffer, and then those that use the buffers born
  // meanwhile, until `next` takes less than before. Runs none of them if that isn't reached, or if
  // a task on the way takes as much memory as `next` did.
  bool LetGo(int32_t buffer, int32_t next) {
    const size_t tasks_before = order_.size();
    const size_t born_before = born_.size();
    const int64_t bytes_before = memory_.BytesDuring(next);
    const int64_t limit = std::max(bound_, bytes_before - 1);
    bool goes_on = RunUsers(buffer, next, limit);
    while (goes_on && memory_.BytesDuring(next) >= bytes_before &&
           order_.size() - tasks_before <= kMostTasks) {
      goes_on = std::ranges::any_of(LiveOf(born_before),
                                    [&](int32_t young) { return RunUsers(young, next, limit); });
    }
    if (memory_.BytesDuring(next) < bytes_before) {
      At(waits_, buffer) = {};
      return true;
    }
    TakeBackTo(tasks_before);
    return false;
  }

  // Returns the live ones of the buffers born since born_ had `born_before` elements, the largest
  // first.
  std::vector<int32_t> LiveOf(size_t born_before) const {
    std::vector<int32_t> buffers(born_.begin() + static_cast<std::ptrdiff_t>(born_before),
                                 born_.end());
    std::erase_if(buffers, [&](int32_t buffer) { return !memory_.IsLive(buffer); });
    std::ranges::stable_sort(buffers, std::greater(),
                             [&](int32_t buffer) { return At(graph_.buffers, buffer).bytes; });
    return buffers;
  }

  // Runs all tasks that use the buffer, or none: if they take more than `limit`, too.
  bool RunUsers(int32_t buffer, int32_t next, int64_t limit) {
    const size_t tasks_before = order_.size();
    const Order tasks = UsersLeft(buffer, next);
    for (const int32_t task : tasks) {
      if (memory_.BytesDuring(task) > limit) {
        TakeBackTo(tasks_before);
        return false;
      }
      RunTask(task);
    }
    return !tasks.empty();
  }

  // Returns the tasks that use the buffer and haven't run, and those that they wait for, in the
  // given order. Returns none if these are too many or `next` is among them.
  Order UsersLeft(int32_t buffer, int32_t next) {
    ++searches_;
    Order found;
    const auto add = [&](int32_t task) {
      if (At(has_run_, task) || At(found_in_, task) == searches_) return true;
      At(found_in_, task) = searches_;
      found.push_back(task);
      return task != next && found.size() <= kMostTasks;
    };
    bool is_small = std::ranges::all_of(At(users_, buffer), add);
    for (size_t i = 0; is_small && i < found.size(); ++i) {
      is_small = std::ranges::all_of(At(graph_.tasks, found[i]).after, add);
    }
    if (!is_small) return {};
    std::ranges::sort(found, {}, [&](int32_t task) { return At(rank_, task); });
    return found;
  }

  const TaskGraph& graph_;
  const Users& users_;
  const Order& given_;
  const int64_t bound_;
  Memory memory_;
  Order order_;
  std::vector<int32_t> born_;  // buffers, in the order in which they were
  std::vector<int32_t> rank_;  // by task, its position in the given order
  std::vector<bool> has_run_;  // by task
  int64_t searches_ = 0;
  std::vector<int64_t> found_in_;               // by task, the last search that came upon it
  std::vector<Wait> waits_;                     // by buffer
  std::set<std::pair<int64_t, int32_t>> live_;  // -bytes and number of buffers that may die
};

// Returns the same tasks in reverse, where births are deaths. An early last reader there is a late
// first writer here.
TaskGraph Reversed(const TaskGraph& graph) {
  TaskGraph reversed = graph;
  for (TaskGraph::Buffer& buffer : reversed.buffers) {
    std::swap(buffer.lives_from_start, buffer.lives_to_end);
  }
  for (TaskGraph::Task& task : reversed.tasks) {
    task.after.clear();
    for (auto& [from, to] : task.in_place) std::swap(from, to);
  }
  for (size_t i = 0; i < graph.tasks.size(); ++i) {
    for (const int32_t earlier : graph.tasks[i].after) {
      At(reversed.tasks, earlier).after.push_back(static_cast<int32_t>(i));
    }
  }
  return reversed;
}

int64_t MostLiveBytes(const TaskGraph& graph, const Order& order) {
  return order.empty() ? 0 : std::ranges::max(LiveBytes(graph, order));
}

}  // namespace

std::vector<int64_t> LiveBytes(const TaskGraph& graph, const std::vector<int32_t>& order) {
  Memory memory(graph);
  std::vector<int64_t> bytes;
  bytes.reserve(order.size());
  for (const int32_t task : order) {
    bytes.push_back(memory.BytesDuring(task));
    memory.Run(task);
  }
  return bytes;
}

std::vector<int32_t> OrderForMemory(const TaskGraph& graph) {
  // Small gains add up with the fewest moves. But sometimes only a large one works: with a bound
  // that is only slightly lower, nothing exceeds it until it is too late to make room.
  constexpr double kGains[] = {kLeastGain, 1.0 / 16};
  constexpr size_t kWays = 2 * std::size(kGains);
  constexpr size_t kMostRounds = 32;
  const TaskGraph reversed = Reversed(graph);
  const Users users = UsersOf(graph);
  const auto forward = [&](const Order& order, int64_t bound) {
    return Sequence(graph, users, order, bound).Run();
  };
  const auto backward = [&](Order order, int64_t bound) {
    std::ranges::reverse(order);
    order = Sequence(reversed, users, order, bound).Run();
    std::ranges::reverse(order);
    return order;
  };
  Order best(graph.tasks.size());
  std::iota(best.begin(), best.end(), 0);
  int64_t best_bytes = MostLiveBytes(graph, best);
  size_t failures = 0;  // in a row
  for (size_t round = 0; round < kMostRounds && failures < kWays; ++round) {
    const size_t way = round % kWays;
    const double gain = kGains[way / 2];
    const auto bound = static_cast<int64_t>((1 - gain) * static_cast<double>(best_bytes));
    Order order = way % 2 == 0 ? backward(forward(best, bound), bound)
                               : forward(backward(best, bound), bound);
    const int64_t bytes = MostLiveBytes(graph, order);
    if (bytes > bound || bytes == best_bytes) {
      ++failures;
      continue;
    }
    failures = 0;
    best = std::move(order);
    best_bytes = bytes;
  }
  return best;
}

}  // namespace skiff
