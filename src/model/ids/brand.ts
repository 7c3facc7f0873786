declare const brand: unique symbol;

/**
 * Text that has been checked to be a `Kind`. The brand exists only for the compiler: ids of
 * different kinds cannot be confused, and text becomes an id only through a parse function.
 */
export type Branded<Kind extends string> = string & { readonly [brand]: Kind };
