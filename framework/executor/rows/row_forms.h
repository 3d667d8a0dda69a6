// Affine forms that give the rows of a value as a function of the counts of a run, and the assumed
// runs (probes) from which such forms are found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace skiff {

// The counts of several assumed runs, the probes.
struct CountProbes {
  // By probe: the counts of the feeds by class, then the counts of the LoD groups. Probe 0 is the
  // plan itself, probe 1 has the same counts of feeds.
  std::vector<std::vector<int64_t>> counts;
  size_t classes = 0;
  int64_t change = -1;  // of the count of class i from probe 1 to probe Other(i)

  size_t size() const { return counts.size(); }
  // Returns the probe in which only this class has another count than in probe 1.
  size_t Other(size_t index) const { return 2 + index; }
};

// (sum of factor * count over the terms + constant) / divisor
struct RowForm {
  struct Term {
    size_t count = 0;  // its place among the counts
    int64_t factor = 0;
  };

  // Returns whether all counts that the form reads are known: not -1.
  bool IsKnown(const std::vector<int64_t>& counts) const;
  // Returns the rows. Returns nothing if they would be no whole number or the sum overflows:
  // tensors without elements may have huge dims.
  std::optional<int64_t> Evaluate(const std::vector<int64_t>& counts) const;
  // Returns whether the form has these rows, which are by probe.
  bool Fits(const CountProbes& probes, const std::vector<int64_t>& rows) const;

  std::vector<Term> terms;
  int64_t constant = 0;
  int64_t divisor = 1;
  int64_t capacity = 0;  // the rows in probe 0
};

// Returns the forms of one count from `begin` to `end`, (a * count + b) / c, that have the rows of
// every probe.
std::vector<RowForm> MultiplesOfCounts(const CountProbes& probes, const std::vector<int64_t>& rows,
                                       size_t begin, size_t end);
// Returns the sum of multiples of classes that has the rows of every probe, if there is one.
std::optional<RowForm> SumOfClasses(const CountProbes& probes, const std::vector<int64_t>& rows);

}  // namespace skiff
