#include "framework/transpiler/bucket_gradients_pass.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "framework/analysis/use_positions.h"
#include "framework/base/dtype.h"
#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/ir/text.h"

namespace skiff {
namespace {

constexpr const char* kSingle = "c_allreduce_sum";
constexpr const char* kList = "c_allreduce_list";
constexpr int64_t kExposedBytes = int64_t{4} << 20;

struct Member {
  size_t position = 0;
  int64_t bytes = 0;
  size_t limit = 0;  // the first op that the member must not move past
};

class Bucketing {
 public:
  Bucketing(const ProgramPassContext& context, Block* root)
      : bucket_bytes_(context.data_parallel.bucket_bytes),
        root_(*root),
        positions_(context.registry, *root) {}

  PassReport Run() {
    std::map<std::string, std::vector<Member>> by_kind;
    for (size_t i = 0; i < root_.ops().size(); ++i) {
      const Op& op = *root_.ops()[i];
      if (op.type != kSingle) continue;
      by_kind[KindOf(op)].push_back({i, BytesOf(op), positions_.FirstConflict(i)});
    }
    for (const auto& [kind, members] : by_kind) Cut(members);
    Replace();
    return {.pass = {},
            .changes = changes_,
            .summary = StrCat(changes_, " sums over the ranks in ", buckets_, " buckets")};
  }

 private:
  // Returns what ops of a bucket have in common.
  std::string KindOf(const Op& op) const {
    std::string kind = StrCat(root_.GetVar(op.Input("X")[0])->dtype);
    for (const std::string& name : op.Input("Skip")) kind += StrCat(" ", name);
    for (const auto& [name, value] : op.attrs) {
      if (name == kOpRoleVarAttr || name == kOpNamescopeAttr) continue;
      kind += StrCat(" ", name, " ", PrintAttribute(value));
    }
    return kind;
  }

  int64_t BytesOf(const Op& op) const {
    const Var& var = *root_.GetVar(op.Input("X")[0]);
    return ElementCount(var.dims) * SizeOf(var.dtype);
  }

  // Cuts the ops of a kind, which are in the order of the program, into buckets.
  void Cut(const std::vector<Member>& members) {
    const size_t exposed = FirstExposed(members);
    std::vector<Member> bucket;
    int64_t bytes = 0;
    const auto close = [&] {
      if (bucket.size() > 1) buckets_of_.push_back(bucket);
      bucket.clear();
      bytes = 0;
    };
    for (size_t i = 0; i < members.size(); ++i) {
      const bool may_join = std::ranges::all_of(
          bucket, [&](const Member& member) { return members[i].position < member.limit; });
      if (!may_join || bytes >= bucket_bytes_ || i == exposed) close();
      bucket.push_back(members[i]);
      bytes += members[i].bytes;
    }
    close();
  }

  // Returns the first member of the last bucket.
  size_t FirstExposed(const std::vector<Member>& members) const {
    size_t first = members.size() - 1;
    int64_t bytes = members[first].bytes;
    while (first > 0) {
      bytes += members[first - 1].bytes;
      if (bytes > std::min(kExposedBytes, bucket_bytes_)) break;
      --first;
    }
    return first;
  }

  void Replace() {
    std::map<size_t, Op> lists;  // by position
    std::vector<bool> is_gone(root_.ops().size(), false);
    for (const std::vector<Member>& bucket : buckets_of_) {
      lists.emplace(bucket.back().position, ListOf(bucket));
      for (const Member& member : bucket) is_gone[member.position] = true;
      changes_ += static_cast<int64_t>(bucket.size());
      ++buckets_;
    }
    for (size_t i = root_.ops().size(); i-- > 0;) {
      if (!is_gone[i]) continue;
      root_.RemoveOps(i, i + 1);
      const auto list = lists.find(i);
      if (list != lists.end()) root_.InsertOp(i, std::move(list->second));
    }
  }

  Op ListOf(const std::vector<Member>& bucket) const {
    Op list = *root_.ops()[bucket.back().position];
    list.type = kList;
    list.id = -1;
    list.attrs.erase(kOpRoleVarAttr);
    std::vector<std::string> x, out;
    for (const Member& member : bucket) {
      const Op& op = *root_.ops()[member.position];
      x.push_back(op.Input("X")[0]);
      out.push_back(op.Output("Out")[0]);
    }
    list.SetInput("X", std::move(x)).SetOutput("Out", std::move(out));
    return list;
  }

  const int64_t bucket_bytes_;
  Block& root_;
  const UsePositions positions_;
  std::vector<std::vector<Member>> buckets_of_;
  int64_t changes_ = 0;
  int64_t buckets_ = 0;
};

}  // namespace

PassReport BucketGradientsPass::Apply(const ProgramPassContext& context, Program* program) const {
  return Bucketing(context, program->root()).Run();
}

}  // namespace skiff
