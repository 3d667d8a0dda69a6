#include "tests/fuzz/fuzz_processes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <utility>

#include "framework/base/error.h"
#include "memory/places.h"

namespace skiff::fuzz {
namespace {

constexpr int64_t kMemoryBytes = int64_t{256} << 20;
constexpr time_t kCpuSeconds = 20;
constexpr unsigned kSeconds = 300;
// The exit status of a process whose work is done.
constexpr int kDone = 77;

// What the processes share.
struct Progress {
  std::atomic<uint64_t> next = 0;
  std::atomic<uint64_t> failures = 0;
  std::atomic<uint64_t> ends[5] = {};
  std::atomic<uint64_t> current[kMostJobs] = {};
};

// Lines from child processes, which append them to a file without a name.
class Lines {
 public:
  Lines() : file_(std::tmpfile()) {
    SKIFF_ENFORCE(file_ != nullptr, kIo, "no temporary file");
    // Each write goes to the end, whoever has written before.
    fcntl(fileno(file_), F_SETFL, O_APPEND);
  }
  ~Lines() { std::fclose(file_); }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  void Add(std::string line) const {
    std::ranges::replace(line, '\n', ' ');
    line += '\n';
    if (write(fileno(file_), line.data(), line.size()) < 0) std::abort();
  }

  std::vector<std::string> Read() const {
    std::vector<std::string> lines;
    std::rewind(file_);
    char* line = nullptr;
    size_t room = 0;
    for (ssize_t size; (size = getline(&line, &room, file_)) > 0;) {
      lines.emplace_back(line, static_cast<size_t>(size) - 1);
    }
    std::free(line);
    return lines;
  }

 private:
  std::FILE* file_;
};

void SetBounds() {
  AllocatorOf(Place::Cpu()).SetLimit(kMemoryBytes);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
#ifndef __SANITIZE_ADDRESS__
  // What ops allocate by themselves.
  constexpr rlim_t kAddresses = rlim_t{8} << 30;
  const rlimit addresses = {kAddresses, kAddresses};
  setrlimit(RLIMIT_AS, &addresses);
#endif
}

// Starts the clocks that end the process, by SIGPROF and SIGALRM, if a mutant takes too long.
void StartClocks() {
  const itimerval limit = {.it_interval = {}, .it_value = {.tv_sec = kCpuSeconds, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
  alarm(kSeconds);
}

// Runs `work` in a child process, which ends with it. An exception aborts it, so that it doesn't go
// on as a copy of the parent.
pid_t Fork(const std::function<void()>& work) {
  std::fflush(nullptr);
  const pid_t child = fork();
  SKIFF_ENFORCE(child >= 0, kResourceExhausted, "fork: ", std::strerror(errno));
  if (child > 0) return child;
  [&]() noexcept {
    SetBounds();
    work();
  }();
  std::_Exit(kDone);
}

// Returns how a process has ended; empty: its work is done.
std::string EndOf(int status) {
  if (WIFSIGNALED(status)) return StrCat("ended by ", strsignal(WTERMSIG(status)));
  if (WEXITSTATUS(status) != kDone) return StrCat("ended with status ", WEXITSTATUS(status));
  return {};
}

unsigned long long Number(uint64_t mutant) { return mutant; }

class MutantProcesses {
 public:
  MutantProcesses(const MutantCheck& check, const FuzzOptions& options)
      : check_(check), options_(options), progress_(MakeProgress()) {
    progress_->next = options.first;
  }
  ~MutantProcesses() { munmap(progress_, sizeof(Progress)); }
  MutantProcesses(const MutantProcesses&) = delete;
  MutantProcesses& operator=(const MutantProcesses&) = delete;

  FuzzResult Run() {
    std::map<pid_t, int> children;
    for (int job = 0; job < options_.jobs; ++job) children[Start(job)] = job;
    FuzzResult result;
    while (!children.empty()) {
      int status = 0;
      const pid_t child = wait(&status);
      const auto found = children.find(child);
      if (found == children.end()) continue;
      const int job = found->second;
      children.erase(found);
      const std::string how = EndOf(status);
      if (how.empty()) continue;
      Fail(progress_->current[job], how);
      ++result.tried;
      // Else it might be the process itself that fails, forever.
      if (progress_->failures < kMostFailures) children[Start(job)] = job;
    }
    for (const std::string& line : lines_.Read()) AddLine(line, &result);
    std::ranges::copy(progress_->ends, result.ends.begin());
    for (const uint64_t count : result.ends) result.tried += count;
    return result;
  }

 private:
  static Progress* MakeProgress() {
    void* memory =
        mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    SKIFF_ENFORCE(memory != MAP_FAILED, kResourceExhausted, "mmap: ", std::strerror(errno));
    return new (memory) Progress;
  }

  void Fail(uint64_t mutant, const std::string& what) {
    ++progress_->failures;
    // At once: a search may take hours.
    std::fprintf(stderr, "--mutant=%llu: %s\n", Number(mutant), what.c_str());
    lines_.Add(StrCat("problem ", mutant, " ", what));
  }

  // Returns false if there is no other one.
  bool TakeNumber(uint64_t* number) {
    if (progress_->failures >= kMostFailures) return false;
    *number = progress_->next++;
    return *number - options_.first < options_.count;
  }

  pid_t Start(int job) {
    return Fork([this, job] {
      for (uint64_t number; TakeNumber(&number);) {
        progress_->current[job] = number;
        StartClocks();
        const MutantReport report = check_(number);
        ++progress_->ends[static_cast<size_t>(report.end)];
        if (!report.problem.empty()) Fail(number, report.problem);
        if (!report.unverified.empty())
          lines_.Add(StrCat("unverified ", number, " ", report.unverified));
        if (!report.only_verify.empty())
          lines_.Add(StrCat("only_verify ", number, " ", report.only_verify));
      }
    });
  }

  static void AddLine(const std::string& line, FuzzResult* result) {
    const size_t number = line.find(' ') + 1;
    const uint64_t mutant = std::strtoull(line.c_str() + number, nullptr, 10);
    const std::string text = line.substr(line.find(' ', number) + 1);
    if (line.starts_with("problem")) {
      result->failures.push_back({mutant, text});
    } else {
      auto& kinds = line.starts_with("unverified") ? result->unverified : result->only_verify;
      auto& [example, count] = kinds[KindOf(text)];
      if (count++ == 0) example = mutant;
    }
  }

  const MutantCheck& check_;
  const FuzzOptions& options_;
  Progress* const progress_;
  const Lines lines_;
};

}  // namespace

std::string KindOf(const std::string& message) {
  std::string kind;
  bool is_quoted = false;
  for (const char c : message) {
    if (c == '"') is_quoted = !is_quoted;
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (is_digit && kind.ends_with('N')) continue;
    if (!is_quoted) kind += is_digit ? 'N' : c;
  }
  return kind;
}

FuzzResult RunMutants(const MutantCheck& check, const FuzzOptions& options) {
  SKIFF_ENFORCE(options.count >= 1, kInvalidArgument, "0 mutants, expected at least 1");
  SKIFF_ENFORCE(options.jobs >= 1 && options.jobs <= kMostJobs, kInvalidArgument, options.jobs,
                " jobs, expected 1 to ", kMostJobs);
  return MutantProcesses(check, options).Run();
}

std::string FailureOf(const Mutant& mutant) {
  const Lines lines;
  const pid_t child = Fork([&] {
    StartClocks();
    const std::string problem = CheckMutant(mutant).problem;
    if (!problem.empty()) lines.Add(problem);
  });
  int status = 0;
  waitpid(child, &status, 0);
  const std::vector<std::string> found = lines.Read();
  return found.empty() ? EndOf(status) : found.front();
}

}  // namespace skiff::fuzz
