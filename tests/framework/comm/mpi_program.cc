// Ranks that mpirun starts, for mpi_communicator_test.py.
//
// usage: mpi_program CASE TIME_LIMIT
// Prints what went wrong; exits with status 0 if nothing did.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/comm/gather.h"
#include "framework/comm/launched_ranks.h"
#include "framework/comm/mpi_communicator.h"
#include "tests/framework/comm/drawn_exchange.h"

namespace skiff {
namespace {

// Several pieces of a message (mpi_communicator.cc), and an odd rest.
constexpr int64_t kManyBytes = (int64_t{40} << 20) + 13;

void Expect(bool condition, const std::string& what) {
  SKIFF_ENFORCE(condition, kDataLoss, "wrong: ", what);
}

void MoveMessages(Communicator* own) {
  int64_t bytes = 0;
  for (uint64_t call = 0; call < 200; ++call) {
    const DrawnExchange drawn(own->world().size, 30000, call);
    Expect(drawn.Run(own), StrCat("messages of call ", call));
    bytes += drawn.BytesToOthers(own->world().rank);
  }
  Expect(own->bytes_sent() == bytes, "bytes_sent");
}

void MoveManyBytes(Communicator* own) {
  Expect(DrawnExchange(own->world().size, kManyBytes, 7).Run(own), "large messages");
}

template <typename T>
void CheckSum(Communicator* own, int64_t count) {
  const int32_t size = own->world().size;
  std::vector<T> numbers(count);
  for (int64_t i = 0; i < count; ++i) numbers[i] = i % 1000 + own->world().rank;
  own->Sum(numbers.data(), count, kDTypeOf<T>, nullptr);
  bool are_right = true;
  for (int64_t i = 0; i < count; ++i) {
    are_right = are_right && numbers[i] == i % 1000 * size + size * (size - 1) / 2;
  }
  Expect(are_right, StrCat("sums of ", count, " numbers"));
}

void Sum(Communicator* own) {
  for (const int64_t count : {0, 1, 3, 1000, 5000001}) {
    CheckSum<float>(own, count);
    CheckSum<double>(own, count);
  }
}

void Gather(Communicator* own) {
  const World& world = own->world();
  Expect(MaxOverRanks(own, world.rank * 1.5) == (world.size - 1) * 1.5, "maximum");
  const std::vector<std::string> texts = GatherTexts(own, std::string(world.rank, 'x'));
  Expect(texts[world.size - 1].size() == static_cast<size_t>(world.size - 1), "texts");
}

void SayPlace(Communicator* own) {
  const World& world = own->world();
  std::printf("%s of %d, %d of %d here\n", world.Text().c_str(), world.size, world.local_rank,
              world.local_size);
}

// Sends a message of `sent` bytes from rank 1 to rank 2, which expects `expected` bytes.
void SendOne(Communicator* own, int64_t sent, int64_t expected) {
  const std::vector<char> out(sent, 1);
  std::vector<char> in(expected);
  if (own->world().rank == 1) {
    own->Exchange({{{.to = 2, .data = out.data(), .bytes = sent}}}, {}, nullptr);
  }
  if (own->world().rank == 2) {
    own->Exchange({}, {{{.from = 1, .data = in.data(), .bytes = expected}}}, nullptr);
  }
}

void WaitForAll(Communicator* own) { GatherNumbers(own, 1); }

void SumWithout(Communicator* own, int32_t missing) {
  float number = 1;
  if (own->world().rank != missing) own->Sum(&number, 1, DType::kFloat32, nullptr);
}

// Rank 1 fails in this way; the other ranks wait for it.
void FailOnRank1(Communicator* own, const std::function<void()>& fail) {
  WaitForAll(own);
  if (own->world().rank == 1) fail();
  WaitForAll(own);
}

void ExpectExit(pid_t child, int expected) {
  int status = 0;
  Expect(waitpid(child, &status, 0) == child, "waitpid");
  Expect(WIFEXITED(status) && WEXITSTATUS(status) == expected, StrCat("exit with ", expected));
}

// Rank 1 forks a child that exits, and a child that also destroys the communicator.
void Fork(Communicator* own) {
  if (own->world().rank == 1) {
    const pid_t exits = fork();
    if (exits == 0) std::exit(7);
    ExpectExit(exits, 7);
    const pid_t returns = fork();
    if (returns == 0) return;
    ExpectExit(returns, 0);
  }
  WaitForAll(own);
}

[[noreturn]] void SleepForever() {
  while (true) pause();
}

void StartTwice(Communicator* own) {
  try {
    StartMpi(1);
    Expect(false, "MPI has started twice");
  } catch (const Error& error) {
    if (own->world().rank == 0) std::printf("%s\n", error.what());
  }
}

const std::map<std::string, std::function<void(Communicator*)>>& Cases() {
  static const auto& cases = *new std::map<std::string, std::function<void(Communicator*)>>{
      {"messages", MoveMessages},
      {"many_bytes", MoveManyBytes},
      {"sum", Sum},
      {"gather", Gather},
      {"place", SayPlace},
      {"start_twice", StartTwice},
      {"fork", Fork},
      {"longer", [](Communicator* own) { SendOne(own, 12, 8); }},
      {"shorter", [](Communicator* own) { SendOne(own, 8, 12); }},
      {"empty", [](Communicator* own) { SendOne(own, 0, 12); }},
      {"unexpected", [](Communicator* own) { SendOne(own, 12, 0); }},
      {"more_pieces", [](Communicator* own) { SendOne(own, kManyBytes, 1 << 24); }},
      {"fewer_pieces", [](Communicator* own) { SendOne(own, 100, kManyBytes); }},
      {"one_piece", [](Communicator* own) { SendOne(own, 1 << 24, kManyBytes); }},
      {"shorter_rest", [](Communicator* own) { SendOne(own, kManyBytes - 1, kManyBytes); }},
      {"sleep",
       [](Communicator* own) { own->world().rank == 1 ? SleepForever() : WaitForAll(own); }},
      {"sum_without", [](Communicator* own) { SumWithout(own, 1), SleepForever(); }},
      {"abort",
       [](Communicator* own) { FailOnRank1(own, [=] { own->Abort("the disk is full"); }); }},
      {"exit", [](Communicator* own) { FailOnRank1(own, [] { std::exit(0); }); }},
      {"kill", [](Communicator* own) { FailOnRank1(own, [] { raise(SIGKILL); }); }},
      {"stop", [](Communicator* own) { FailOnRank1(own, [] { raise(SIGSTOP); }); }},
      {"throw",
       [](Communicator* own) {
         FailOnRank1(own, [] { Throw(ErrorCode::kDataLoss, "the loss is nan"); });
       }},
      {"leave_early",
       [](Communicator* own) {
         // Longer than the time limit, which the end of the other ranks doesn't know.
         if (own->world().rank == 1) sleep(2);
       }},
  };
  return cases;
}

void Run(const std::string& name, double time_limit) {
  const std::string activity = StrCat("the case ", name);
  const std::shared_ptr<Communicator> own = LaunchedRanks({.time_limit = time_limit});
  SKIFF_ENFORCE(own != nullptr, kFailedPrecondition, "no launcher has started ranks");
  own->set_activity(&activity);
  Cases().at(name)(own.get());
}

}  // namespace
}  // namespace skiff

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    skiff::Run(argv[1], std::atof(argv[2]));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
