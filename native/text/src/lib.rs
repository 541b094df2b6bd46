//! Text services behind one C header.
