-- The sessions whose last run is not over, so that they are found among many others.
CREATE TABLE open_runs (
	session BIGINT NOT NULL PRIMARY KEY
);

INSERT INTO open_runs SELECT session FROM state WHERE key = 'refrain:run'
	AND position(convert_to('\"status\":\"completed\"', 'UTF8') IN value) = 0
	AND position(convert_to('\"status\":\"failed\"', 'UTF8') IN value) = 0
	AND position(convert_to('\"status\":\"canceled\"', 'UTF8') IN value) = 0;
