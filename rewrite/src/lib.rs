//! Reads MySQL statements and splices keys into them; pure.
