-- The sessions whose last run is not over, so that they are found among many others.
CREATE TABLE open_runs (
	session INTEGER NOT NULL PRIMARY KEY
) STRICT;

INSERT INTO open_runs SELECT session FROM state WHERE key = 'refrain:run'
	AND instr(value, CAST('\"status\":\"completed\"' AS BLOB)) = 0
	AND instr(value, CAST('\"status\":\"failed\"' AS BLOB)) = 0
	AND instr(value, CAST('\"status\":\"canceled\"' AS BLOB)) = 0;
