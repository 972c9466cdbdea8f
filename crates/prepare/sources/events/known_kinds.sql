-- What is called how, in lower case, each once. The engine joins best with what it knows to be small.
SELECT lowered(name) AS name, min(kind) AS kind FROM kinds GROUP BY lowered(name)
