// Package sqlite calls SQLite, in its translation to Go (modernc.org/sqlite). It is for
// programs that write and read many small rows: unlike the driver of database/sql it
// prepares a statement once, and copies no more than it must.
package sqlite
