-- texts holds the long texts of the event, each once, behind a line that says where in
-- the event they belong; NULL if there are none. data has their beginnings. Rows of
-- version 1 have whole texts in data.
ALTER TABLE events ADD COLUMN texts BYTEA;
