// Names of the values of a plan, and tables that are indexed by them.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace skiff {

// Names one value of a plan, or none. A ValueId is no number: only a ValueTable turns it into an
// index.
class ValueId {
 public:
  // Names no value.
  constexpr ValueId() = default;
  constexpr explicit ValueId(size_t index) : index_(static_cast<int32_t>(index)) {}

  // Whether it names a value.
  constexpr explicit operator bool() const { return index_ >= 0; }
  // The place of the value in tables. Requires that the id names a value.
  constexpr size_t index() const { return static_cast<size_t>(index_); }

  // No value comes before all others, which are in the order of their places.
  friend constexpr auto operator<=>(ValueId, ValueId) = default;

 private:
  int32_t index_ = -1;
};

// Returns "#7", or "none". For StrCat.
inline std::string TextOf(ValueId id) { return id ? "#" + std::to_string(id.index()) : "none"; }

// A table with an entry for each value of a plan.
template <typename T>
class ValueTable {
 public:
  using value_type = T;
  using const_iterator = typename std::vector<T>::const_iterator;

  ValueTable() = default;
  explicit ValueTable(size_t size, const T& initial = T()) : of_values_(size, initial) {}

  size_t size() const { return of_values_.size(); }
  bool contains(ValueId id) const { return id && id.index() < size(); }
  // Require that the table has the value.
  typename std::vector<T>::reference operator[](ValueId id) { return of_values_[id.index()]; }
  typename std::vector<T>::const_reference operator[](ValueId id) const {
    return of_values_[id.index()];
  }
  // Adds another value and returns its name.
  ValueId Add(T of_value) {
    of_values_.push_back(std::move(of_value));
    return ValueId(size() - 1);
  }

  auto begin() { return of_values_.begin(); }
  auto end() { return of_values_.end(); }
  auto begin() const { return of_values_.begin(); }
  auto end() const { return of_values_.end(); }

 private:
  std::vector<T> of_values_;
};

// The names of `count` values, from the first on: for (ValueId value : ValueIds(n)).
class ValueIds {
 public:
  explicit ValueIds(size_t count) : count_(count) {}

  class Iterator {
   public:
    explicit Iterator(size_t index) : index_(index) {}
    ValueId operator*() const { return ValueId(index_); }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    friend bool operator==(Iterator, Iterator) = default;

   private:
    size_t index_;
  };
  Iterator begin() const { return Iterator(0); }
  Iterator end() const { return Iterator(count_); }

 private:
  size_t count_;
};

}  // namespace skiff

template <>
struct std::hash<skiff::ValueId> {
  size_t operator()(skiff::ValueId id) const { return id ? id.index() + 1 : 0; }
};
