// Rows of the tables of transitions of ec_sender.cc and ec_receiver.cc. Values.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <type_traits>

namespace transept {

// A set of states.
template <typename State, typename... States>
requires std::is_enum_v<State>
constexpr unsigned in(State state, States... states) {
  return (1u << static_cast<unsigned>(state)) | (0u | ... | (1u << static_cast<unsigned>(states)));
}

template <typename State, typename Event, typename Action>
struct EcTransition {
  constexpr EcTransition(unsigned states, Event what, State then, std::initializer_list<Action> todo = {})
      : from(states), event(what), to(then), num_actions(todo.size()) {
    std::copy(todo.begin(), todo.end(), list.begin());
  }
  std::span<const Action> actions() const { return std::span(list).first(num_actions); }

  unsigned from;
  Event event;
  State to;
  std::array<Action, 3> list = {};
  size_t num_actions;
};

// The first row that fits; null: the event means nothing in this state.
template <typename State, typename Event, typename Action, size_t kRows>
const EcTransition<State, Event, Action>* find_transition(const EcTransition<State, Event, Action> (&rows)[kRows],
                                                          State state, Event event) {
  const auto* const row =
      std::find_if(rows, rows + kRows, [&](const auto& r) { return r.event == event && (r.from & in(state)) != 0; });
  return row == rows + kRows ? nullptr : row;
}

}  // namespace transept
