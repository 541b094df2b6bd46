// SPDX-License-Identifier: Apache-2.0
// Lets a folder that has only headers be a library.
