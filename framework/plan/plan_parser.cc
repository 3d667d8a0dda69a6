#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/element_count.h"
#include "framework/base/error.h"
#include "framework/ir/op_role.h"
#include "framework/ir/text_attributes.h"
#include "framework/ir/text_escape.h"
#include "framework/ir/text_scanner.h"
#include "framework/plan/loop.h"
#include "framework/plan/loop_names.h"
#include "framework/plan/plan_text.h"

namespace skiff {
namespace {

// The values of an op's arguments, by slot, in the order of the text.
using ParsedSlots = std::vector<std::pair<std::string, std::vector<ValueId>>>;

class PlanParser {
 public:
  PlanParser(const OpRegistry& registry, TextScanner* scan) : registry_(registry), scan_(*scan) {}

  Plan Parse() {
    scan_.Word("plan");
    ParseSettings();
    scan_.Punctuation('{');
    while (!scan_.TryPunctuation('}')) ParseStatement();
    CheckDeclarations();
    for (Instruction& instruction : plan_.instructions) GiveOpToCopy(&instruction);
    return std::move(plan_);
  }

 private:
  // What the text has said of a value so far.
  struct Mention {
    size_t position = 0;  // of the first one in the text
    bool is_mentioned = false;
    bool is_declared = false;
  };

  void ParseSettings() {
    plan_.place = ParsePlace();
    scan_.Word("reuse");
    scan_.Punctuation('=');
    const size_t policy = scan_.position();
    const std::string_view word = scan_.AnyWord("a policy of reuse");
    Located(policy, [&] { plan_.reuse = ParseReusePolicy(word); });
    plan_.has_guards = scan_.TryWord("guards");
  }

  Place ParsePlace() {
    const size_t start = scan_.position();
    const std::string name = scan_.Name("a place");
    Place place;
    Located(start, [&] { place = Place::FromName(name); });
    return place;
  }

  // Runs `parse` and gives its Errors this place in the text.
  template <typename Function>
  void Located(size_t position, Function parse) {
    try {
      parse();
    } catch (const Error& error) {
      scan_.ThrowAt(position, error.what());
    }
  }

  void ParseStatement() {
    if (scan_.TryWord("value")) {
      ParseWritten();
    } else if (scan_.TryWord("feed")) {
      plan_.feeds = ParseValues();
    } else if (scan_.TryWord("fetch")) {
      plan_.fetches = ParseValues();
    } else if (scan_.TryWord("contiguous")) {
      ContiguousValues list;
      list.alignment_bytes = Setting("alignment");
      list.values = ParseValues();
      plan_.contiguous.push_back(std::move(list));
    } else if (scan_.TryWord("bytes")) {
      plan_.max_live_bytes = Setting("max_live");
      plan_.planned_bytes = Setting("planned");
      plan_.unshared_bytes = Setting("unshared");
      if (TrySetting("host")) plan_.host_planned_bytes = scan_.Number<int64_t>("a number");
    } else {
      plan_.instructions.push_back(ParseInstruction());
    }
  }

  Instruction ParseInstruction() {
    if (scan_.Peek() == '{') return ParseOp();
    if (scan_.TryWord("copy")) return ParseCopy();
    if (scan_.TryWord("fused")) return ParseFused();
    if (scan_.TryWord("loop")) return ParseLoop();
    scan_.ThrowExpected(
        "an instruction ('{', \"copy\", \"fused\" or \"loop\"), \"value\", \"feed\", \"fetch\", "
        "\"contiguous\", \"bytes\" or '}'");
  }

  Instruction ParseOp() {
    const size_t start = scan_.position();
    scan_.Punctuation('{');
    const ParsedSlots outputs = ParseSlots('}', &PlanParser::ParseWritten);
    scan_.Punctuation('=');
    const size_t type_position = scan_.position();
    auto op = std::make_shared<Op>(scan_.Name("an op type"));
    Instruction made;
    Located(type_position, [&] { made.def = &registry_.Get(op->type); });
    scan_.Punctuation('(');
    const ParsedSlots inputs = ParseSlots(')', &PlanParser::ParseValue);
    op->is_target = scan_.TryWord("target");
    if (scan_.Peek() == '{' && !IsOpNext(scan_)) op->attrs = ParseAttributes(&scan_);
    op->inputs = NamesOf(inputs);
    op->outputs = NamesOf(outputs);
    Located(start, [&] { CheckOp(*made.def, *op); });
    made.inputs = InOrder(made.def->inputs, inputs);
    made.outputs = InOrder(made.def->outputs, outputs);
    made.reads_data = ReadsData(*made.def, *op);
    ParseMarks(&made);
    op->id = static_cast<int64_t>(made.position);
    if (TrySetting("id")) op->id = scan_.Number<int64_t>("the id of an op");
    made.op = op.get();
    plan_.made_ops.push_back(std::move(op));
    return made;
  }

  Instruction ParseCopy() {
    Instruction copy;
    copy.kind = InstructionKind::kCopy;
    const size_t start = scan_.position();
    copy.outputs = ParseWrittenValues();
    scan_.Word("from");
    copy.inputs = ParseValues();
    if (copy.outputs.size() != 1 || copy.inputs.size() != 1) {
      scan_.ThrowAt(start, StrCat("a copy has one value on each side, found ", copy.outputs.size(),
                                  " and ", copy.inputs.size()));
    }
    copy.reads_data = {true};
    ParseMarks(&copy);
    if (first_copy_ == 0) first_copy_ = start;
    return copy;
  }

  Instruction ParseFused() {
    Instruction fused;
    fused.kind = InstructionKind::kFused;
    fused.outputs = ParseWrittenValues();
    scan_.Word("from");
    fused.inputs = ParseValues();
    fused.reads_data.assign(fused.inputs.size(), true);
    if (TrySetting("elements")) fused.blocks.elements = scan_.Number<int64_t>("a number");
    if (TrySetting("row_axis")) fused.blocks.row_axis = scan_.Number<int>("an axis");
    if (TrySetting("parts")) fused.blocks.part_count = scan_.Number<int64_t>("a number");
    ParseMarks(&fused);
    const size_t next = std::exchange(next_position_, 0);
    scan_.Punctuation('{');
    do {
      if (scan_.Peek() != '{') scan_.ThrowExpected("an op, the member of a fused instruction");
      fused.members.push_back(ParseOp());
    } while (!scan_.TryPunctuation('}'));
    next_position_ = next;
    fused.op = fused.members.back().op;
    fused.def = fused.members.back().def;
    return fused;
  }

  Instruction ParseLoop() {
    constexpr int kMaxDepth = 64;
    if (depth_ >= kMaxDepth) scan_.ThrowExpected("fewer loops inside each other");
    Instruction made;
    made.kind = InstructionKind::kLoop;
    const size_t type_position = scan_.position();
    auto op = std::make_shared<Op>(scan_.Name("an op type"));
    Located(type_position, [&] { made.def = &registry_.Get(op->type); });
    made.outputs = ParseWrittenValues();
    scan_.Word("from");
    made.inputs = ParseValues();
    made.reads_data.assign(made.inputs.size(), true);
    ParseMarks(&made);
    op->id = TrySetting("id") ? scan_.Number<int64_t>("the id of an op")
                              : static_cast<int64_t>(made.position);
    made.op = op.get();
    plan_.made_ops.push_back(std::move(op));
    scan_.Punctuation('{');
    if (scan_.TryWord("unread")) ParseUnread(&made);
    auto loop = std::make_shared<Loop>();
    ParseRuns(loop.get());
    ParseLinks(loop.get());
    PlanParser body(registry_, &scan_);
    body.depth_ = depth_ + 1;
    loop->body = body.Parse();
    scan_.Punctuation('}');
    CheckLinks(type_position, made, *loop);
    made.loop = std::move(loop);
    return made;
  }

  void ParseUnread(Instruction* made) {
    scan_.Punctuation('[');
    do {
      const size_t start = scan_.position();
      const auto input = scan_.Number<uint32_t>("the index of an input");
      if (input >= made->reads_data.size()) scan_.ThrowAt(start, "the loop has no such input");
      made->reads_data[input] = false;
    } while (scan_.TryPunctuation(','));
    scan_.Punctuation(']');
  }

  void ParseRuns(Loop* loop) {
    scan_.Word("runs");
    loop->iterations = OptionalSetting("iterations");
    loop->condition_feed = OptionalIndex("condition_feed");
    loop->condition_input = OptionalIndex("condition_input");
    loop->count_input = OptionalIndex("count_input");
    loop->count_output = OptionalIndex("count_output");
    loop->max_iterations = Setting("max");
    loop->is_gradient = scan_.TryWord("gradient");
    loop->descending = scan_.TryWord("descending");
  }

  void ParseLinks(Loop* loop) {
    while (true) {
      if (scan_.TryWord("in")) {
        LoopFeed& feed = loop->feeds.emplace_back();
        feed.kind = ParseKind<LoopFeed::Kind>(kFeedKinds);
        feed.value = ParseBodyValue();
        feed.input = OptionalIndex("input");
        feed.stack = OptionalIndex("stack");
      } else if (scan_.TryWord("out")) {
        LoopFetch& fetch = loop->fetches.emplace_back();
        fetch.kind = ParseKind<LoopFetch::Kind>(kFetchKinds);
        fetch.value = ParseBodyValue();
        fetch.output = OptionalIndex("output");
        fetch.input = OptionalIndex("input");
        fetch.feed = OptionalIndex("feed");
        fetch.like = OptionalIndex("like");
      } else if (scan_.TryWord("stack")) {
        LoopStash& stash = loop->stashes.emplace_back();
        stash.value = ParseBodyValue();
        stash.index = OptionalIndex("index");
        stash.shift = scan_.TryWord("next") ? 1 : 0;
      } else if (scan_.TryWord("variable")) {
        LoopScopeValue& variable = loop->scope_values.emplace_back();
        variable.value = ParseBodyValue();
        if (scan_.TryWord("own")) continue;
        variable.index = OptionalIndex("output");
        variable.is_output = variable.index >= 0;
        if (!variable.is_output) variable.index = OptionalIndex("input");
      } else {
        return;
      }
    }
  }

  template <typename Kind, typename Kinds>
  Kind ParseKind(const Kinds& kinds) {
    const size_t start = scan_.position();
    const std::string_view word = scan_.AnyWord("the kind of a link");
    const auto found = std::ranges::find(kinds, word, &Kinds::value_type::first);
    if (found == kinds.end()) scan_.ThrowAt(start, StrCat("there is no link ", Quote(word)));
    return found->second;
  }

  // Reads the index of a value of the body.
  ValueId ParseBodyValue() { return ValueId(scan_.Number<uint32_t>("the index of a value")); }

  int64_t OptionalSetting(std::string_view name) {
    return TrySetting(name) ? scan_.Number<uint32_t>("a number") : int64_t{-1};
  }
  int OptionalIndex(std::string_view name) {
    return TrySetting(name) ? scan_.Number<int>("an index") : -1;
  }

  void CheckLinks(size_t position, const Instruction& made, const Loop& loop) {
    const auto check = [&](bool holds) {
      if (!holds) scan_.ThrowAt(position, "a link of the loop names what the loop doesn't have");
    };
    const auto in = [](int index, size_t size) {
      return index >= -1 && index < static_cast<int>(size);
    };
    const auto has = [&](ValueId value) { return loop.body.values.contains(value); };
    const size_t inputs = made.inputs.size();
    const size_t outputs = made.outputs.size();
    for (const LoopFeed& feed : loop.feeds) {
      const bool needs_input = feed.kind != LoopFeed::Kind::kCarried;
      check(has(feed.value) && in(feed.input, inputs) && in(feed.stack, outputs));
      check(!needs_input || feed.input >= 0);
    }
    for (const LoopFetch& fetch : loop.fetches) {
      const bool is_carried = fetch.kind == LoopFetch::Kind::kCarried;
      check(has(fetch.value) && in(fetch.output, outputs) && in(fetch.input, inputs));
      check(in(fetch.feed, loop.feeds.size()) && (fetch.feed >= 0) == is_carried);
      check(in(fetch.like, inputs));
    }
    for (const LoopStash& stash : loop.stashes) {
      check(has(stash.value) && stash.index >= 0);
      check(in(stash.index, loop.is_gradient ? inputs : outputs));
    }
    for (const LoopScopeValue& variable : loop.scope_values) {
      check(has(variable.value));
      const bool is_own = loop.body[variable.value].meta.is_array && variable.index == -1;
      check(is_own || variable.index >= 0);
      check(in(variable.index, variable.is_output ? outputs : inputs));
    }
    check(in(loop.condition_feed, loop.feeds.size()) && in(loop.condition_input, inputs));
    check(in(loop.count_input, inputs) && in(loop.count_output, outputs));
  }

  void ParseMarks(Instruction* instruction) {
    instruction->sets_rows = scan_.TryWord("sets_rows");
    if (scan_.TryWord("before")) {
      instruction->batching = Batching::kBefore;
    } else if (scan_.TryWord("after")) {
      instruction->batching = Batching::kAfter;
    }
    ParseStream(instruction);
    instruction->place = TrySetting("place") ? ParsePlace() : plan_.place;
    if (TrySetting("workspaces")) ParseWorkspaces(instruction);
    if (TrySetting("block")) instruction->block = scan_.Number<int32_t>("the index of a block");
    instruction->position =
        TrySetting("position") ? scan_.Number<uint32_t>("the position of an op") : next_position_;
    next_position_ = instruction->position + 1;
  }

  void ParseStream(Instruction* instruction) {
    if (scan_.TryPunctuation('@')) {
      instruction->stream = PlanStream::kCommunication;
      scan_.Word("comm");
      const size_t start = scan_.position();
      if (ParseCollective() == next_collective_++) return;
      scan_.ThrowAt(start, StrCat("expected (c", next_collective_ - 1,
                                  "): the communication stream counts its instructions"));
    }
    if (!scan_.TryWord("wait")) return;
    const size_t start = scan_.position();
    const int64_t awaited = ParseCollective();
    if (awaited >= next_collective_) {
      scan_.ThrowAt(start, "expected an instruction of the communication stream before this one");
    }
    instruction->waits_for = static_cast<int32_t>(awaited);
  }

  // Reads (cN).
  int64_t ParseCollective() {
    scan_.Punctuation('(');
    scan_.Punctuation('c');
    const auto number = scan_.Number<uint32_t>("the number of an instruction");
    scan_.Punctuation(')');
    return number;
  }

  void ParseWorkspaces(Instruction* instruction) {
    scan_.Punctuation('[');
    do {
      instruction->workspace_bytes.push_back(scan_.Number<int64_t>("the bytes of a workspace"));
      if (!scan_.TryPunctuation('@')) continue;
      instruction->workspace_offsets.push_back(scan_.Number<int64_t>("an offset"));
    } while (scan_.TryPunctuation(','));
    const size_t offsets = instruction->workspace_offsets.size();
    if (offsets != 0 && offsets != instruction->workspace_bytes.size()) {
      scan_.ThrowExpected("an offset for each workspace or for none");
    }
    scan_.Punctuation(']');
  }

  ParsedSlots ParseSlots(char close, ValueId (PlanParser::*parse)()) {
    ParsedSlots slots;
    scan_.Slots(close,
                [&](std::string slot) { slots.emplace_back(std::move(slot), ParseList(parse)); });
    return slots;
  }

  Slots NamesOf(const ParsedSlots& parsed) const {
    Slots slots;
    for (const auto& [slot, values] : parsed) {
      SlotArguments named{.slot = slot, .arguments = {}};
      for (ValueId value : values) {
        named.arguments.push_back(value ? plan_[value].name : std::string(kEmptyVarName));
      }
      slots.push_back(std::move(named));
    }
    return slots;
  }

  static std::vector<ValueId> InOrder(const std::vector<SlotDef>& defs, const ParsedSlots& parsed) {
    std::vector<ValueId> values;
    for (const SlotDef& def : defs) {
      const auto found = std::ranges::find(parsed, def.name, &ParsedSlots::value_type::first);
      if (found == parsed.end()) continue;
      values.insert(values.end(), found->second.begin(), found->second.end());
    }
    return values;
  }

  std::vector<ValueId> ParseList(ValueId (PlanParser::*parse)()) {
    std::vector<ValueId> values;
    scan_.Punctuation('[');
    if (scan_.TryPunctuation(']')) return values;
    do {
      values.push_back((this->*parse)());
    } while (scan_.TryPunctuation(','));
    scan_.Punctuation(']');
    return values;
  }
  std::vector<ValueId> ParseValues() { return ParseList(&PlanParser::ParseValue); }
  std::vector<ValueId> ParseWrittenValues() { return ParseList(&PlanParser::ParseWritten); }

  // Reads name#index, or none.
  ValueId ParseValue() {
    const size_t start = scan_.position();
    std::string name = scan_.Name("a value (name#index) or \"none\"");
    if (scan_.Peek() != '#' && name == "none") return {};
    return ParseIndex(start, std::move(name));
  }

  // Reads #index after the name of a value.
  ValueId ParseIndex(size_t start, std::string name) {
    scan_.Punctuation('#');
    const auto index = scan_.Number<uint32_t>("the index of a value");
    // Each value takes some characters, so a larger index is a mistake, and would cost memory.
    if (index >= scan_.text().size()) {
      scan_.ThrowAt(start, StrCat("the index ", index, " is too large for a text of ",
                                  scan_.text().size(), " characters"));
    }
    while (plan_.values.size() <= index) {
      plan_.values.Add({});
      mentions_.Add({});
    }
    const ValueId value(index);
    Mention& mention = mentions_[value];
    if (!mention.is_mentioned) {
      mention = {.position = start, .is_mentioned = true, .is_declared = false};
      plan_[value].name = std::move(name);
    } else if (plan_[value].name != name) {
      scan_.ThrowAt(start, StrCat("value #", index, " is ", Quote(name), " here and ",
                                  Quote(plan_[value].name), " before"));
    }
    return value;
  }

  // Reads a value, with its declaration if that follows.
  ValueId ParseWritten() {
    const size_t start = scan_.position();
    const ValueId id = ParseValue();
    if (!id || scan_.PeekWord().empty()) return id;
    if (mentions_[id].is_declared) {
      scan_.ThrowAt(start, StrCat("value #", id.index(), " is declared twice"));
    }
    mentions_[id].is_declared = true;
    // Parsed aside: where the value is stored may name a value that isn't there yet.
    PlanValue value{.name = plan_[id].name, .meta = {}};
    value.meta.dtype = ParseDType(&scan_);
    const size_t start_of_dims = scan_.position();
    const std::vector<int64_t> dims = ParseIntegers(&scan_);
    Located(start_of_dims, [&] {
      value.meta.shape = Shape(dims);
      CheckElementLimit(dims);
    });
    ParseValueMarks(&value);
    if (scan_.TryPunctuation('@')) ParseStorage(&value);
    plan_[id] = std::move(value);
    return id;
  }

  void ParseValueMarks(PlanValue* value) {
    Layout& layout = value->meta.layout;
    if (TrySetting("lod")) value->meta.lod_level = scan_.Number<int32_t>("a LoD level");
    value->meta.persistable = scan_.TryWord("persistable");
    if (TrySetting("blocked")) {
      const size_t start = scan_.position();
      const auto channels = scan_.Number<int32_t>("the channels of a block");
      if (channels < 2) scan_.ThrowAt(start, "expected at least 2 channels in a block");
      layout = Layout::Blocked(channels);
    }
    if (TrySetting("selected_rows")) {
      layout = Layout::SelectedRows(scan_.Number<int64_t>("the rows of a dense tensor"));
    }
    value->meta.is_array = scan_.TryWord("array");
    value->is_exclusive = scan_.TryWord("exclusive");
    value->is_checkpoint = scan_.TryWord("checkpoint");
    value->place = TrySetting("place") ? ParsePlace() : plan_.place;
  }

  // Reads what follows the @: scope, feed, made, an offset or another value.
  void ParseStorage(PlanValue* value) {
    const size_t start = scan_.position();
    const bool is_offset = scan_.Peek() >= '0' && scan_.Peek() <= '9';
    if (is_offset) {
      value->offset = scan_.Number<int64_t>("an offset in the arena");
      return;
    }
    std::string name = scan_.Name("\"scope\", \"feed\", \"made\", \"stack\", an offset or a value");
    if (scan_.Peek() == '#') {
      value->alias_of = ParseIndex(start, std::move(name));
    } else if (name == "scope") {
      value->storage = Storage::kScope;
    } else if (name == "feed") {
      value->storage = Storage::kFeed;
    } else if (name == "made") {
      value->storage = Storage::kKernelOwned;
    } else if (name == "stack") {
      value->storage = Storage::kStack;
    } else {
      scan_.ThrowExpected("'#' and the index of a value");
    }
  }

  // Reads name=N.
  int64_t Setting(std::string_view name) {
    scan_.Word(name);
    scan_.Punctuation('=');
    return scan_.Number<int64_t>("a number");
  }

  // Reads name= if it follows. Returns whether it did.
  bool TrySetting(std::string_view name) {
    if (!scan_.TryWord(name)) return false;
    scan_.Punctuation('=');
    return true;
  }

  void CheckDeclarations() {
    for (ValueId id : plan_.ids()) {
      const Mention& mention = mentions_[id];
      if (!mention.is_mentioned) continue;
      if (!mention.is_declared) {
        scan_.ThrowAt(mention.position, StrCat("value ", NameText(plan_[id].name), "#", id.index(),
                                               " is declared nowhere"));
      }
      CheckAliases(id);
    }
  }

  // Whoever asks for the storage of a value follows alias_of to its end.
  void CheckAliases(ValueId id) {
    ValueId storage = id;
    for (size_t steps = 0; storage; ++steps, storage = plan_[storage].alias_of) {
      if (steps > plan_.values.size()) {
        scan_.ThrowAt(mentions_[id].position,
                      StrCat("value ", NameText(plan_[id].name), "#", id.index(),
                             " is stored in itself, by way of other values"));
      }
    }
  }

  // A copy is for the op at its position, wherever in the plan that is. If a pass has dropped that
  // op, any op names the copy in messages well enough: the one nearest in position.
  void GiveOpToCopy(Instruction* copy) {
    if (copy->kind != InstructionKind::kCopy) return;
    const Instruction* nearest = nullptr;
    const auto distance = [&](const Instruction& op) {
      return op.position > copy->position ? op.position - copy->position
                                          : copy->position - op.position;
    };
    const auto consider = [&](const Instruction& op) {
      if (op.kind != InstructionKind::kOp && op.kind != InstructionKind::kLoop) return;
      if (nearest == nullptr || distance(op) < distance(*nearest)) nearest = &op;
    };
    for (const Instruction& instruction : plan_.instructions) {
      consider(instruction);
      std::ranges::for_each(instruction.members, consider);
    }
    if (nearest == nullptr) {
      scan_.ThrowAt(first_copy_, "a copy is for an op, and the plan has none");
    }
    copy->op = nearest->op;
    copy->def = nearest->def;
  }

  const OpRegistry& registry_;
  TextScanner& scan_;
  int depth_ = 0;  // of loops around this plan
  Plan plan_;
  ValueTable<Mention> mentions_;
  size_t first_copy_ = 0;  // its position in the text; 0: none
  size_t next_position_ = 0;
  int32_t next_collective_ = 0;  // in the communication stream
};

}  // namespace

Plan ParsePlan(const OpRegistry& registry, std::string_view text) {
  TextScanner scan(text);
  Plan plan = PlanParser(registry, &scan).Parse();
  if (!scan.AtEnd()) scan.ThrowExpected("the end of the text");
  return plan;
}

}  // namespace skiff
