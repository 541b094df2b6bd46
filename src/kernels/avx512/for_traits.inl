// SPDX-License-Identifier: Apache-2.0
// From what a type is at run time to what kernels are compiled for.

// Calls f.template operator()<kGroup, kOffset>() for a type.
template <class Function>
inline void for_traits(const QuantTraits& traits, Function f) {
  if (traits.group == 32) return traits.has_offset ? f.template operator()<32, true>() : f.template operator()<32, false>();
  traits.has_offset ? f.template operator()<16, true>() : f.template operator()<16, false>();
}
